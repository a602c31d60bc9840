// Derivatives of functions, with the meaning of torch.autograd.functional: the input is a function of tensors, the
// result its value and derivative at a point. jvp(), forward mode, is in engine/autograd.h.
//
//   const auto f = [](const rg::Tensors& x) { return rg::Tensors{rg::mv(x[0], x[1])}; };
//   rg::autograd::jacobian(f, {a, b})[0][1]    // d output 0 / d input 1
//   const auto s = [](const rg::Tensors& x) { return rg::sum(rg::exp(x[0])); };
//   rg::autograd::hvp(s, {x}, {v}).product[0]  // the Hessian of s times v
//
// Functions are called with new tensors on the inputs' memory, in gradient mode, whatever the mode outside. Inputs are
// floating. Results have no history, unless create_graph is set: then values and derivatives depend on those inputs
// that require a gradient. It is set by default inside a backward with create_graph, for example in that of a Function.
// The derivative of an output by an input that it does not depend on is zero; with `strict` that is an
// Error(unused_input).
//
// vjp and vhp use backwards only. hvp is forward mode over one backward and costs less; the ops of the function need a
// jvp (all ops of the library have one; a user-defined Function has it as a member `jvp`). Where second derivatives are
// not continuous, the two may differ as H and its transpose do. Rows of a Jacobian are backwards of one captured graph:
// the first is recorded, the others replay it.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "engine/autograd.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::autograd {

using VectorFunction = std::function<Tensors(const Tensors&)>;
using ScalarFunction = std::function<Tensor(const Tensors&)>;  // gives one element

struct FunctionalOptions {
  /// Unset: the mode of the enclosing backward, if there is one. Inside a backward with create_graph derivatives can be
  /// differentiated.
  std::optional<bool> create_graph = {};
  bool strict = false;
};

/// f(inputs), and the gradients of the inputs for cotangents of the outputs. `cotangents` have the outputs' types. An
/// empty list means ones, for a single output of one element; an undefined tensor means zero. Errors:
/// cotangent_mismatch, non_scalar_backward_without_cotangent, unused_input.
struct VjpResult {
  Tensors outputs, gradients;
};
VjpResult vjp(const VectorFunction& f, const Tensors& inputs, const Tensors& cotangents = {},
              FunctionalOptions options = {}, SourceLocation where = SourceLocation::current());

/// jacobian[o][i] has the shape of output o followed by that of input i: at most 8 dims together. With create_graph a
/// second backward can differentiate it, and jacobian itself can be nested. Errors: bad_argument (too many dims),
/// unused_input.
std::vector<Tensors> jacobian(const VectorFunction& f, const Tensors& inputs, FunctionalOptions options = {},
                              SourceLocation where = SourceLocation::current());

/// hessian[i][j], of a function that returns one element, has the shape of input i followed by that of input j. Errors:
/// non_scalar_backward_without_cotangent, and those of jacobian.
std::vector<Tensors> hessian(const ScalarFunction& f, const Tensors& inputs, FunctionalOptions options = {},
                             SourceLocation where = SourceLocation::current());

/// f(inputs), and the Hessian times v (hvp) or v times the Hessian (vhp). `v` has a tensor of each input's type;
/// undefined means zero. Errors: cotangent_mismatch, non_scalar_backward_without_cotangent, unused_input; hvp:
/// unsupported for an op without jvp.
struct HessianProduct {
  Tensor output;
  Tensors product;
};
HessianProduct hvp(const ScalarFunction& f, const Tensors& inputs, const Tensors& v,
                   FunctionalOptions options = {}, SourceLocation where = SourceLocation::current());
HessianProduct vhp(const ScalarFunction& f, const Tensors& inputs, const Tensors& v,
                   FunctionalOptions options = {}, SourceLocation where = SourceLocation::current());

}  // namespace retrograd::autograd
#pragma GCC visibility pop
