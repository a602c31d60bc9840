// See autograd/func.h.
#include "autograd/func.h"

#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>

#include "autograd/jacobian_shape.h"
#include "engine/batching.h"
#include "engine/walk.h"
#include "ops/creation.h"
#include "ops/shape_ops.h"

namespace retrograd::inline v0::func::detail {
namespace {

// New tensors on the inputs' memory that require a gradient; they continue the inputs' history, at each level of vmap.
Tensors fresh(const Tensors& inputs, SourceLocation where) {
  Tensors x;
  for (const Tensor& input : inputs) {
    x.push_back(alias(Operand(input, where)));
    x.back().requires_grad_(true, where);
  }
  return x;
}

// Whether a gradient can depend on a tensor that requires one and is not among `own`, here or outside of a vmap.
bool has_outer_history(const Tensors& outputs, const Tensors& own) {
  std::vector<Edge> roots;
  for (const Tensor& y : outputs) {
    if (!y.defined()) continue;
    if (requires_grad_outside(y.impl())) return true;
    if (Edge edge = gradient_edge(y.impl())) roots.push_back(std::move(edge));
  }
  if (roots.empty()) return false;
  std::unordered_set<const TensorImpl*> known;
  for (const Tensor& x : own) known.insert(x.get());
  const Walk walk(roots, nullptr);
  return std::ranges::any_of(walk.leaves(), [&](const Walk::Leaf& l) { return !known.contains(l.leaf); });
}

}  // namespace

Tensors or_zeros(Tensors tangents, const Tensors& outputs, SourceLocation where) {
  for (size_t i = 0; i < tangents.size(); ++i)
    if (!tangents[i].defined() && outputs[i].defined())
      tangents[i] = zeros_of(outputs[i].impl().type(), where);
  return tangents;
}

Pullback::Pullback(std::string_view op, const autograd::VectorFunction& f, const Tensors& inputs,
                   bool only_once, SourceLocation where)
    : op_(op), where_(where), records_(GradMode::is_enabled()), only_once_(only_once) {
  const EnableGradGuard recording;
  if (!GradMode::is_enabled())
    fail(Category::bad_argument, op,
         "inference mode keeps gradients off, so all of them would be zeros. Hint: no_grad in its place, or "
         "InferenceMode(false) around the derivative",
         where);
  inputs_ = fresh(inputs, where);
  outputs_ = f(inputs_);
  has_outer_history_ = records_ && has_outer_history(outputs_, inputs_);
}

Tensors Pullback::outputs() const {
  Tensors values = outputs_;
  for (Tensor& y : values)
    if (!has_outer_history_ && y.defined()) y = y.detach();
  return values;
}

Tensors Pullback::operator()(const Tensors& cotangents) const {
  if (cotangents.size() != outputs_.size())
    fail(Category::cotangent_mismatch, op_,
         fmt::format("{} cotangents for {} outputs", cotangents.size(), outputs_.size()), where_);
  Tensors roots, given;
  bool create_graph = has_outer_history_;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const Tensor &y = outputs_[i], &v = cotangents[i];
    if (!y.defined() || !v.defined() || !y.requires_grad()) continue;
    create_graph |= GradMode::is_enabled() && (v.requires_grad() || requires_grad_outside(v.impl()));
    roots.push_back(y);
    given.push_back(v);
  }
  if (!roots.empty())
    return autograd::grad(roots, inputs_, given, !only_once_ || create_graph, create_graph, true, true,
                          where_);
  Tensors zeros;
  for (const Tensor& x : inputs_) zeros.push_back(zeros_of(x.impl().type(), where_));
  return zeros;
}

Tensors Pullback::of_scalar() const {
  const Tensor y = outputs_.size() == 1 ? outputs_[0] : Tensor();
  if (!y.defined() || y.dim() != 0)
    fail(Category::non_scalar_backward_without_cotangent, op_,
         fmt::format(
             "Expected f(*args) to return a scalar tensor, got {}. Maybe you wanted to use the vjp or jacrev "
             "APIs instead?",
             outputs_.size() == 1 ? describe(y) : fmt::format("{} tensors", outputs_.size())),
         where_);
  return (*this)({ones_of(y.impl().type(), where_)});
}

namespace {

// A batch of tensors of this type, each with a 1 at another element.
Tensor units(const TensorType& type, SourceLocation where) {
  const Dim n = type.shape.numel();
  Shape batch = type.shape;
  batch.insert(0, n);
  return reshape_to(Operand(eye(n, {}, {type.dtype, type.device}, where), where), batch);
}

}  // namespace

Tensor jacobian_by_rows(const std::function<Tensor(const Tensor&)>& f, const Tensor& x,
                        std::optional<int64_t> chunk_size, SourceLocation where) {
  const Pullback pullback(
      "jacrev", [&f](const Tensors& at) { return Tensors{f(at[0])}; }, {x}, false, where);
  const TensorType y = pullback.outputs()[0].impl().type();
  const auto row = [&pullback](const Tensor& v) { return pullback({v})[0]; };
  const Tensor rows = vmap(row, 0, 0, "error", chunk_size, where)(units(y, where));
  return reshape_to(Operand(rows, where), autograd::jacobian_shape(y.shape, x.impl().shape(), where));
}

Tensor jacobian_by_columns(const std::function<Tensor(const Tensor&)>& f, const Tensor& x,
                           std::string_view randomness, SourceLocation where) {
  Shape y;
  const auto column = [&](const Tensor& t) {
    const auto [value, tangent] = jvp(f, x, t, where);
    y = value.impl().shape();
    return tangent;
  };
  const Tensor columns = vmap(column, 0, -1, randomness, {}, where)(units(x.impl().type(), where));
  return reshape_to(Operand(columns, where), autograd::jacobian_shape(y, x.impl().shape(), where));
}

}  // namespace retrograd::func::detail
