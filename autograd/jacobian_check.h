// The check of one function at one point, which gradcheck() and gradgradcheck() share.
//
// gradgradcheck() checks the gradient, which is a function of inputs and cotangents: hence the names that a
// failure is told by are given. What is compared with what: autograd/gradcheck.h.
#pragma once

#include <string>
#include <vector>

#include "autograd/gradcheck.h"

namespace retrograd::autograd::check {

/// What the text of a failure calls inputs and outputs.
struct Names {
  std::string check;
  std::vector<std::string> inputs, outputs;
};

/// Errors and result: gradcheck() in autograd/gradcheck.h. names.outputs may be shorter than the outputs: the
/// rest are "output 1", ...
GradcheckResult run(Names names, const VectorFunction& f, const Tensors& inputs,
                    const GradcheckOptions& options, SourceLocation where);

}  // namespace retrograd::autograd::check
