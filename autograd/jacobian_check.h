// The check of one function at one point; shared by gradcheck() and gradgradcheck().
//
// gradgradcheck() checks the gradient, which is a function of inputs and cotangents: hence the names in the messages
// are parameters. autograd/gradcheck.h describes the comparisons.
#pragma once

#include <string>
#include <vector>

#include "autograd/gradcheck.h"

namespace retrograd::inline v0::autograd::check {

/// The names of inputs and outputs in the text of a failure.
struct Names {
  std::string check;
  std::vector<std::string> inputs, outputs;
};

/// Errors and result: gradcheck() in autograd/gradcheck.h. names.outputs may be shorter than the outputs: the
/// rest are "output 1", ...
GradcheckResult run(Names names, const VectorFunction& f, const Tensors& inputs,
                    const GradcheckOptions& options, SourceLocation where);

}  // namespace retrograd::autograd::check
