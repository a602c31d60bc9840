// torch::autograd: gradients, user-defined functions, forward mode. Arguments, their order and their meaning are
// libtorch's already, so all of this is names.
//
// The saved_data of a context holds numbers, texts and lists of integers; tensors go through save_for_backward(),
// anything else into saved_object (engine/function.h).
#pragma once

#include "engine/autograd.h"
#include "engine/function.h"
#include "engine/node.h"
#include "engine/saved_tensor_hooks.h"
#include "torch/types.h"

#pragma GCC visibility push(default)
namespace torch {

namespace autograd {

using Variable = Tensor;
using variable_list = retrograd::Tensors;
using tensor_list = retrograd::Tensors;

using retrograd::AutogradContext;
using retrograd::AutoGradMode;
using retrograd::Function;
using retrograd::GradMode;
using retrograd::Node;
using retrograd::autograd::AnomalyMode;
using retrograd::autograd::backward;
using retrograd::autograd::DetectAnomalyGuard;
using retrograd::autograd::grad;
/// Into these tensors alone, which may be in braces.
inline void backward(const variable_list& tensors, const variable_list& grad_tensors,
                     std::optional<bool> retain_graph, bool create_graph, const variable_list& inputs,
                     retrograd::SourceLocation where = retrograd::SourceLocation::current()) {
  retrograd::autograd::backward(tensors, grad_tensors, retain_graph, create_graph, inputs, where);
}
/// A leaf with the values of `data`, which it shares.
inline Variable make_variable(const Tensor& data, bool requires_grad = false) {
  return data.detach().set_requires_grad(requires_grad);
}

namespace forward_ad {
using retrograd::autograd::DualLevel;
}  // namespace forward_ad

}  // namespace autograd

using autograd::Variable;

}  // namespace torch
#pragma GCC visibility pop
