// See ops/margin_losses.h: first the losses that are made of other ops, then the op.
#include "ops/margin_losses.h"

#include <fmt/format.h>

#include "engine/named_call.h"
#include "ops/activations.h"
#include "ops/arithmetic.h"
#include "ops/attributes.h"
#include "ops/binary.h"
#include "ops/comparison.h"
#include "ops/creation.h"
#include "ops/family_parts.h"
#include "ops/index_ops.h"
#include "ops/loss_operands.h"
#include "ops/losses.h"
#include "ops/reduce.h"
#include "ops/ternary.h"
#include "ops/unary.h"
#include "ops/vector_pairs.h"
#include "ops/widened.h"

namespace retrograd::inline v0 {

namespace {

using ops::LossOperands;
using ops::parse_reduction;

// Operands that broadcast, but have one number of dims.
void check_ranks(std::string_view op, Operand x, std::initializer_list<const Tensor*> others) {
  for (const Tensor* other : others)
    if (other->impl().rank() != shape_of(x).rank())
      fail(Category::shape_mismatch, op,
           fmt::format("{} and {} have different numbers of dims", describe(x.tensor()), describe(*other)),
           x.where());
}

// Checks of a triplet loss.
void check_triplet(std::string_view op, Operand anchor, const Tensor& positive, const Tensor& negative,
                   Scalar margin) {
  if (margin <= Scalar(0))
    fail(Category::bad_argument, op, fmt::format("the margin {} is not positive", to_string(margin)),
         anchor.where());
  check_ranks(op, anchor, {&positive, &negative});
}

// d(anchor, positive) and d(anchor, negative); with `swap` d(positive, negative) where that is smaller.
struct TripletDistances {
  Tensor near, far;
};
TripletDistances triplet_distances(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                                   const DistanceFunction& distance, bool swap) {
  const Tensor far = distance(anchor, negative);
  return {distance(anchor, positive), swap ? minimum(far, distance(positive, negative)) : far};
}

}  // namespace

Tensor margin_ranking_loss(Operand input1, const Tensor& input2, const Tensor& target, Scalar margin,
                           LossReduction reduction) {
  const NamedCall call("margin_ranking_loss", input1.where());
  const auto averaging = parse_reduction(reduction, "margin_ranking_loss", input1.where());
  check_ranks("margin_ranking_loss", input1, {&input2, &target});
  const LossOperands wide({&input1.tensor(), &input2, &target});
  const Tensor difference = sub(wide(input1), wide(input2));
  return wide.reduce(relu(sub(margin, mul(wide(target), difference))), averaging);
}

Tensor hinge_embedding_loss(Operand input, const Tensor& target, Scalar margin, LossReduction reduction) {
  const NamedCall call("hinge_embedding_loss", input.where());
  const auto averaging = parse_reduction(reduction, "hinge_embedding_loss", input.where());
  const LossOperands wide({&input.tensor(), &target});
  const Tensor x = wide(input), side = wide(target);
  const Tensor apart = where(ne(side, 1), relu(sub(margin, x)), 0), near = where(ne(side, -1), x, 0);
  return wide.reduce(add(apart, near), averaging);
}

namespace {

// x divided by its length along the last dim, which is at least 1e-6.
Tensor unit(const Tensor& x) { return div(x, hypot(vector_norm(x, 2, -1, true), 1e-6)); }

void check_cosine(Operand x1, const Tensor& x2, const Tensor& target) {
  const int rank = target.impl().rank();
  if (rank > 1 || shape_of(x1).rank() != rank + 1 || x2.impl().rank() != rank + 1)
    fail(Category::bad_dim, "cosine_embedding_loss",
         fmt::format(
             "inputs (N, D) with a target (N), or (D) with one of no dims are needed, given {}, {}, {}",
             describe(x1.tensor()), describe(x2), describe(target)),
         x1.where());
}

}  // namespace

Tensor cosine_embedding_loss(Operand input1, const Tensor& input2, const Tensor& target, Scalar margin,
                             LossReduction reduction) {
  const NamedCall call("cosine_embedding_loss", input1.where());
  const auto averaging = parse_reduction(reduction, "cosine_embedding_loss", input1.where());
  check_cosine(input1, input2, target);
  const LossOperands wide({&input1.tensor(), &input2, &target});
  const Tensor cosine = sum(mul(unit(wide(input1)), unit(wide(input2))), -1), side = wide(target);
  const Tensor apart = where(eq(side, -1), relu(sub(cosine, margin)), 0);
  return wide.reduce(where(eq(side, 1), sub(1, cosine), apart), averaging);
}

Tensor triplet_margin_loss(Operand anchor, const Tensor& positive, const Tensor& negative, Scalar margin,
                           Scalar p, Scalar eps, bool swap, LossReduction reduction) {
  const NamedCall call("triplet_margin_loss", anchor.where());
  const auto averaging = parse_reduction(reduction, "triplet_margin_loss", anchor.where());
  check_triplet("triplet_margin_loss", anchor, positive, negative, margin);
  const LossOperands wide({&anchor.tensor(), &positive, &negative});
  const auto distance = [&](const Tensor& x, const Tensor& y) {
    return pairwise_distance(Operand(x, anchor.where()), y, p, eps);
  };
  const auto [near, far] = triplet_distances(wide(anchor), wide(positive), wide(negative), distance, swap);
  return wide.reduce(relu(add(sub(near, far), margin)), averaging);
}

Tensor triplet_margin_with_distance_loss(Operand anchor, const Tensor& positive, const Tensor& negative,
                                         const DistanceFunction& distance_function, Scalar margin, bool swap,
                                         LossReduction reduction) {
  const NamedCall call("triplet_margin_with_distance_loss", anchor.where());
  if (!distance_function)
    return triplet_margin_loss(anchor, positive, negative, margin, 2.0, 1e-6, swap, reduction);
  const auto averaging = parse_reduction(reduction, "triplet_margin_with_distance_loss", anchor.where());
  check_triplet("triplet_margin_with_distance_loss", anchor, positive, negative, margin);
  const auto distance = [&](const Tensor& x, const Tensor& y) {
    const CallScope::Suspend users_lines;
    return distance_function(x, y);
  };
  const auto [near, far] = triplet_distances(anchor.tensor(), positive, negative, distance, swap);
  const LossOperands wide({&near, &far});
  return wide.reduce(relu(add(sub(wide(near), wide(far)), margin)), averaging);
}

namespace {

// Samples as rows: (N, C) of an input (N, C), (C) or of no dims, which must have classes, and be floating.
Shape class_rows(std::string_view op, Operand x) {
  const Shape& shape = shape_of(x);
  const int rank = shape.rank();
  if (rank > 2 || (rank > 0 && shape.back() == Dim(0)))
    fail(Category::bad_dim, op,
         fmt::format("(N, C) or (C) with classes is needed, not {}", describe(x.tensor())), x.where());
  if (!is_floating(x.tensor().dtype()))
    fail(Category::dtype_mismatch, op, fmt::format("{} is not floating", describe(x.tensor())), x.where());
  return {rank == 2 ? shape[0] : Dim(1), rank == 0 ? Dim(1) : shape.back()};
}

void check_classes(std::string_view op, Operand x, const Tensor& target) {
  if (target.dtype() != kInt64)
    fail(Category::dtype_mismatch, op, fmt::format("targets are int64, not {}", describe(target)), x.where());
}

void check_multi_margin(Operand x, const Tensor& target, Scalar p, const Tensor& weight, const Shape& rows) {
  constexpr std::string_view op = "multi_margin_loss";
  if (!(p == Scalar(1) || p == Scalar(2)))
    fail(Category::bad_argument, op, fmt::format("p is {}, not 1 or 2", to_string(p)), x.where());
  check_classes(op, x, target);
  const bool is_sample = rows[0] == Dim(1) && target.impl().rank() == 0;
  if (!is_sample && !(target.impl().shape() == Shape{rows[0]}))
    fail(Category::shape_mismatch, op,
         fmt::format("{} and {} do not fit together", describe(x.tensor()), describe(target)), x.where());
  if (weight.defined() && !(weight.impl().shape() == Shape{rows[1]}))
    fail(Category::shape_mismatch, op,
         fmt::format("the weight {} is not one of {} classes", describe(weight), to_string(rows[1])),
         x.where());
}

}  // namespace

Tensor multi_margin_loss(Operand input, const Tensor& target, Scalar p, Scalar margin, const Tensor& weight,
                         LossReduction reduction) {
  const NamedCall call("multi_margin_loss", input.where());
  const auto averaging = parse_reduction(reduction, "multi_margin_loss", input.where());
  const Shape rows = class_rows("multi_margin_loss", input);
  check_multi_margin(input, target, p, weight, rows);
  const LossOperands wide({&input.tensor(), &weight});
  const Tensor x = reshape_to(wide(input), rows), index = reshape_to(target, {rows[0], 1});
  Tensor hinges = relu(add(sub(x, gather(x, 1, index)), margin));
  if (p == Scalar(2)) hinges = square(hinges);
  // The target itself does not count.
  Tensor loss = div(sum(scatter(hinges, 1, index, Operand(Scalar(0.0))), 1), Scalar(rows[1]));
  if (weight.defined()) loss = mul(loss, index_select(wide(weight), 0, reshape_to(target, {rows[0]})));
  return wide.reduce(reshape_to(loss, target.impl().shape()), averaging);
}

Tensor multilabel_margin_loss(Operand input, const Tensor& target, LossReduction reduction) {
  constexpr std::string_view op = "multilabel_margin_loss";
  const NamedCall call(op, input.where());
  const auto averaging = parse_reduction(reduction, op, input.where());
  const Shape rows = class_rows(op, input);
  check_classes(op, input, target);
  ops::check_same_shape(input, target, op);
  const LossOperands wide({&input.tensor()});
  const Tensor x = reshape_to(wide(input), rows), index = reshape_to(target, rows);
  const Tensor loss = ops::emit<ops::MultilabelMargin>({x.get(), index.get()}, {}, input.where());
  return wide.reduce(shape_of(input).rank() == 2 ? loss : reshape_to(loss, {}), averaging);
}

Tensor soft_margin_loss(Operand input, const Tensor& target, LossReduction reduction) {
  constexpr std::string_view op = "soft_margin_loss";
  const NamedCall call(op, input.where());
  const auto averaging = parse_reduction(reduction, op, input.where());
  if (!is_floating(input.tensor().dtype()))
    fail(Category::dtype_mismatch, op, fmt::format("{} is not floating", describe(input.tensor())),
         input.where());
  const Shape& shape = shape_of(input);
  if (!(broadcast_shapes(shape, target.impl().shape(), op, input.where()) == shape))
    fail(Category::shape_mismatch, op,
         fmt::format("the target {} does not broadcast to {}", describe(target), describe(input.tensor())),
         input.where());
  const LossOperands wide({&input.tensor(), &target});
  return wide.reduce(neg(logsigmoid(mul(wide(input), wide(target)))), averaging);
}

Tensor multilabel_soft_margin_loss(Operand input, const Tensor& target, const Tensor& weight,
                                   LossReduction reduction) {
  constexpr std::string_view op = "multilabel_soft_margin_loss";
  const NamedCall call(op, input.where());
  const auto averaging = parse_reduction(reduction, op, input.where());
  const Shape& shape = shape_of(input);
  if (shape.rank() == 0) fail(Category::bad_dim, op, "the input has no dim of classes", input.where());
  const LossOperands wide({&input.tensor(), &target, &weight});
  Tensor loss = ops::Function<ops::BceWithLogits>()(wide(input), wide(target), 1.0);
  if (weight.defined()) loss = mul(loss, wide(weight));
  return wide.reduce(div(sum(loss, shape.rank() - 1), Scalar(shape.back())), averaging);
}

// ---- multilabel_margin ------------------------------------------------------------------------------------

namespace ops {
namespace {

void check_multilabel(const Call& call, const TensorImpl& x, const TensorImpl& target) {
  if (!is_floating(x.dtype()) || is_float8(x.dtype()) || target.dtype() != kInt64)
    fail_call(call, Category::dtype_mismatch, "floating scores and int64 targets are needed");
  if (x.rank() != 2) fail_call(call, Category::bad_dim, "scores are (samples, classes)");
  if (!(x.shape() == target.shape()))
    fail_call(call, Category::shape_mismatch, "scores and targets have different shapes");
}

Tensor slopes(const Tensor& g, const Tensor& x, const Tensor& target, SourceLocation where) {
  return emit<MultilabelMarginBackward>({g.get(), x.get(), target.get()}, {}, where);
}

// The derivative of each sample in the direction of v.
Tensor along(const Tensor& v, const Tensor& x, const Tensor& target, SourceLocation where) {
  const Widened wide(v);
  const TensorType type = v.impl().type();
  const Tensor ones = ones_of({type.dtype, type.device, {type.shape[0]}}, where);
  return wide.back(sum(mul(wide(slopes(ones, x, target, where)), wide(v)), 1));
}

}  // namespace

void MultilabelMargin::infer(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl& x = *call.operands[0];
  check_multilabel(call, x, *call.operands[1]);
  set_like(x, {x.shape()[0]}, *outputs[0]);
}

void MultilabelMargin::vjp(RuleContext& c) {
  c.give(0, slopes(c.grad(), c.in(0).tensor(), c.in(1).tensor(), c.where()));
}

void MultilabelMargin::jvp(TangentContext& c) {
  c.give(0, along(c.tangent(0), c.in(0).tensor(), c.in(1).tensor(), c.where()));
}

void MultilabelMarginBackward::infer(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl &g = *call.operands[0], &x = *call.operands[1];
  check_multilabel(call, x, *call.operands[2]);
  if (g.dtype() != x.dtype())
    fail_call(call, Category::dtype_mismatch, "gradient and scores differ in dtype");
  if (!(g.shape() == Shape{x.shape()[0]}))
    fail_call(call, Category::shape_mismatch, "the gradient does not have an entry per sample");
  set_like(x, x.shape(), *outputs[0]);
}

// By x the derivative is 0 almost everywhere.
void MultilabelMarginBackward::vjp(RuleContext& c) {
  const Tensor x = c.in(1).tensor(), target = c.in(2).tensor();
  if (c.needs(0)) c.give(0, along(c.grad(), x, target, c.where()));
  if (c.needs(1)) c.give(1, zeros_of(c.type(1), c.where()));
}

void MultilabelMarginBackward::jvp(TangentContext& c) {
  if (c.needs(0))
    c.give(0, slopes(c.tangent(0), c.in(1).tensor(), c.in(2).tensor(), c.where()));
  else
    c.give(0, zeros_of(c.out_type(), c.where()));
}

}  // namespace ops
}  // namespace retrograd
