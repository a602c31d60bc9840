// gradcheck and gradgradcheck: a function's derivatives against differences of its values, in float64.
//
//   const auto f = [](const rg::Tensors& x) { return rg::Tensors{rg::tanh(x[0])}; };
//   rg::autograd::gradcheck(f, {x});   // throws if a check fails
//
// Checks, for the inputs that require a gradient and the floating outputs that have one:
//   - the full Jacobian by central differences against reverse mode, a backward for each row;
//   - the same against forward mode, a tangent for each column;
//   - <w, J t> = <J' w, t> for random w and t, with a much smaller tolerance than differences allow;
//   - that each gradient has its input's shape and dtype;
//   - with several outputs, that an omitted cotangent counts as zero;
//   - that the same call gives the same bits again, values and gradients.
// gradgradcheck does all this for the gradient as a function of inputs and cotangents, so it also checks forward over
// reverse.
//
// Inputs keep their strides. An element is changed in memory: if several elements of an expanded input are one number,
// they change together, and the sum of their derivatives is compared. The function must not write to its inputs, and
// must be differentiable within eps of them. Cost: about 3 calls per element of the inputs, a backward per element of
// the outputs.
#pragma once

#include <string>

#include "autograd/functional.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::autograd {

struct GradcheckOptions {
  double eps = 1e-6;                // the change of an element
  double atol = 1e-6, rtol = 1e-4;  // tolerances of differences
  double dot_rtol = 1e-12;          // tolerance of <w, J t> = <J' w, t>, relative to the sum of |w J t|
  bool raise = true;                // throw GradcheckError; else only return the failure
  bool check_forward = true;        // off for functions whose ops have no jvp
  bool check_undefined = true;      // omitted cotangents
  bool check_repeatable = true;     // the same bits again
  bool non_contiguous_cotangents = false;  // gradgradcheck: its random cotangents are transposed
};
inline constexpr GradcheckOptions kGradgradcheckOptions{.atol = 1e-5, .rtol = 1e-3};

/// A derivative differs. The text names outputs, inputs, elements, and both numbers.
class GradcheckError : public Exception {
 public:
  using Exception::Exception;
};

struct GradcheckResult {
  bool passed = true;
  std::string failure;  // the first difference found
  explicit operator bool() const { return passed; }
};

/// Errors: GradcheckError (with raise); dtype_mismatch for an input that requires a gradient, or an output, that is not
/// float64; bad_argument when no input requires a gradient. Exceptions of the function pass through.
GradcheckResult gradcheck(const VectorFunction& f, const Tensors& inputs,
                          const GradcheckOptions& options = {},
                          SourceLocation where = SourceLocation::current());

/// `cotangents`: the point at which the gradient is taken, one for each output that has a gradient; empty: random ones.
GradcheckResult gradgradcheck(const VectorFunction& f, const Tensors& inputs, const Tensors& cotangents = {},
                              const GradcheckOptions& options = kGradgradcheckOptions,
                              SourceLocation where = SourceLocation::current());

}  // namespace retrograd::autograd
#pragma GCC visibility pop
