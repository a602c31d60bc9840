// Type rules, derivatives and public functions of the losses over classes: see ops/losses.h.
#include <fmt/format.h>

#include "ops/arithmetic.h"
#include "ops/attributes.h"

#include "engine/autocast.h"
#include "engine/named_call.h"
#include "ops/batching.h"
#include "ops/comparison.h"
#include "ops/family_parts.h"
#include "ops/loss_reduction.h"
#include "ops/losses.h"
#include "ops/reduce.h"
#include "ops/shape_ops.h"
#include "ops/softmax.h"
#include "ops/ternary.h"
#include "ops/widened.h"

namespace retrograd::inline v0 {
namespace ops {
namespace {

Shape without(Shape shape, int dim) {
  shape.erase(dim);
  return shape;
}

void check_target(const Call& call, const TensorImpl& target) {
  if (target.dtype() != kInt64) fail_call(call, Category::dtype_mismatch, "class indices are int64");
}

void check_classes(const Call& call, const TensorImpl& x, const TensorImpl& target) {
  check_target(call, target);
  const int dim = checked_dim(call, call.attrs_as<ClassLossAttrs>().dim, x.rank());
  if (!(target.shape() == without(x.shape(), dim)))
    fail_call(call, Category::shape_mismatch, "the target must have the input's shape without the classes");
}

Shape stats_shape(Shape samples) {
  samples.insert(0, 2);
  return samples;
}

// A value per sample, repeated along the classes.
Tensor spread(const Tensor& v, const Shape& shape, int64_t dim) {
  return expand_reduced(v, shape, dim, false, {});
}

// 1 where the target counts, 0 where it is ignored.
Tensor counted(const Tensor& target, int64_t ignore_index, ScalarType dtype) {
  return to(ne(target, ignore_index), dtype);
}

Tensor nll(const Tensor& x, const Tensor& target, const ClassLossAttrs& a, SourceLocation where) {
  return emit<Nll>({x.get(), target.get()}, a, where);
}

}  // namespace

void ClassLoss::infer(const Call& call, TensorImpl* const* outputs) {
  check_floating(call);
  const TensorImpl &x = *call.operands[0], &target = *call.operands[1];
  check_classes(call, x, target);
  outputs[0]->set_type(x.dtype(), x.device(), target.shape());
}

Tensor Nll::transpose(RuleContext& c, int, const Tensor& g) {
  const Attrs& a = c.attrs<Attrs>();
  return emit<NllBackward>({g.get(), c.in(1).tensor().get()}, {a, c.type(0).shape[static_cast<int>(a.dim)]},
                           c.where());
}

void NllBackward::infer(const Call& call, TensorImpl* const* outputs) {
  check_floating(call);
  const TensorImpl &g = *call.operands[0], &target = *call.operands[1];
  check_target(call, target);
  if (!(g.shape() == target.shape()))
    fail_call(call, Category::shape_mismatch, "gradient and target have different shapes");
  const Attrs& a = call.attrs_as<Attrs>();
  Shape shape = g.shape();
  shape.insert(checked_dim(call, a.dim, g.rank() + 1), a.classes);
  check_sizes(call, shape);
  outputs[0]->set_type(g.dtype(), g.device(), shape);
}

Tensor NllBackward::transpose(RuleContext& c, int, const Tensor& g) {
  return nll(g, c.in(1).tensor(), c.attrs<Attrs>(), c.where());
}

void CrossEntropy::infer(const Call& call, TensorImpl* const* outputs) {
  ClassLoss::infer(call, outputs);
  const TensorImpl& loss = *outputs[0];
  outputs[1]->set_type(wide_dtype(loss.dtype()), loss.device(), stats_shape(loss.shape()));
}

namespace {

Tensor cross_entropy_backward(const Tensor& g, const Tensor& x, const Tensor& target, const Tensor& stats,
                              const ClassLossAttrs& a, SourceLocation where) {
  return emit<CrossEntropyBackward>({g.get(), x.get(), target.get(), stats.get()}, a, where);
}

// sum((softmax(x) - onehot(target)) * v) over the classes: the tangent of the loss for a tangent v.
Tensor loss_tangent(const Tensor& x, const Tensor& target, const Tensor& tangent, const ClassLossAttrs& a,
                    SourceLocation where) {
  const Widened wide(tangent);
  const Tensor v = wide(tangent), p = softmax(wide(x), a.dim);
  const Tensor mean = mul(sum(mul(p, v), a.dim), counted(target, a.ignore_index, p.dtype()));
  return wide.back(add(mean, nll(v, target, a, where)));
}

}  // namespace

void CrossEntropy::vjp(RuleContext& c) {
  if (!c.grad().defined()) return;
  c.give(0, cross_entropy_backward(c.grad(), c.in(0).tensor(), c.in(1).tensor(), c.out(1), c.attrs<Attrs>(),
                                   c.where()));
}

void CrossEntropy::jvp(TangentContext& c) {
  const Attrs& a = c.attrs<Attrs>();
  c.give(0, loss_tangent(c.in(0).tensor(), c.in(1).tensor(), c.tangent(0), a, c.where()));
}

void CrossEntropyBackward::infer(const Call& call, TensorImpl* const* outputs) {
  check_floating(call);
  const TensorImpl &g = *call.operands[0], &x = *call.operands[1], &target = *call.operands[2],
                   &stats = *call.operands[3];
  check_classes(call, x, target);
  if (g.dtype() != x.dtype() || stats.dtype() != wide_dtype(x.dtype()))
    fail_call(call, Category::dtype_mismatch, "gradient, input and stats do not go together");
  if (!(g.shape() == target.shape() && stats.shape() == stats_shape(target.shape())))
    fail_call(call, Category::shape_mismatch, "gradient and stats do not have the target's shape");
  outputs[0]->set_type(x.dtype(), x.device(), x.shape());
}

// The Jacobian of softmax is symmetric: softmax_backward serves the gradient and the tangent of x.
void CrossEntropyBackward::vjp(RuleContext& c) {
  const Attrs& a = c.attrs<Attrs>();
  const Tensor v = c.grad(), given = c.in(0).tensor(), target = c.in(2).tensor(), x = c.in(1).tensor();
  if (c.needs(0)) c.give(0, loss_tangent(x, target, v, a, c.where()));
  if (!c.needs(1)) return;
  const Widened wide(v);
  const Tensor g = wide(given), p = softmax(wide(x), a.dim);
  const Tensor weight = mul(g, counted(target, a.ignore_index, g.dtype()));
  c.give(1, wide.back(
                softmax_backward(mul(wide(v), spread(weight, c.type(1).shape, a.dim)), p, a.dim, c.where())));
}

void CrossEntropyBackward::jvp(TangentContext& c) {
  const Attrs& a = c.attrs<Attrs>();
  const Tensor g = c.in(0).tensor(), x = c.in(1).tensor(), target = c.in(2).tensor();
  Tensor t;
  if (c.needs(0)) t = cross_entropy_backward(c.tangent(0), x, target, c.in(3).tensor(), a, c.where());
  if (c.needs(1)) {
    const Widened wide(g);
    const Tensor scale = wide(g), weight = mul(scale, counted(target, a.ignore_index, scale.dtype()));
    const Tensor turned = softmax_backward(wide(c.tangent(1)), softmax(wide(x), a.dim), a.dim, c.where());
    t = plus(t, wide.back(mul(turned, spread(weight, c.type(1).shape, a.dim))));
  }
  c.give(0, t);
}

// ---- batches of vmap ------------------------------------------------------------------------------------------------

// A sample's statistics have a dim of two in front: before the batch dim, where the op has them.
void CrossEntropy::batch(BatchContext& c) {
  Attrs attrs = c.attrs<Attrs>();
  ++attrs.dim;
  const Tensor operands[] = {c.all(0), c.all(1)};
  const Tensors results = c.run(operands, &attrs);
  c.give(0, results[0]);
  c.give(1, transpose(Operand(results[1], c.where()), 0, 1));
}

void CrossEntropyBackward::batch(BatchContext& c) {
  Attrs attrs = c.attrs<Attrs>();
  ++attrs.dim;
  const Tensor stats = contiguous(Operand(transpose(Operand(c.all(3), c.where()), 0, 1), c.where()));
  const Tensor operands[] = {c.all(0), c.all(1), c.all(2), stats};
  c.give(c.run(operands, &attrs));
}

}  // namespace ops

namespace {

using ops::Averaging;

// A loss over class indices, the weights of its classes and its reduction.
class ClassReduction {
 public:
  ClassReduction(Operand x, const Tensor& target, const Tensor& weight, int64_t ignore_index,
                 LossReduction reduction, std::string_view op)
      : x_(x), target_(target), weight_(weight), averaging_(ops::parse_reduction(reduction, op, x.where())) {
    const int rank = x.tensor().impl().rank();
    if (rank == 0) fail(Category::bad_dim, op, "the input has no dim of classes", x.where());
    attrs_ = {rank == 1 ? 0 : 1, ignore_index};
    if (weight.defined() && !(weight.impl().shape() == Shape{classes()}))
      fail(Category::shape_mismatch, op,
           fmt::format("the weight has shape {} for {} classes", to_string(weight.impl().shape()),
                       to_string(classes())),
           x.where());
  }

  const ops::ClassLossAttrs& attrs() const { return attrs_; }
  Dim classes() const { return shape()[static_cast<int>(attrs_.dim)]; }

  /// The weights of the classes, broadcast to the input.
  Tensor spread_weight() const {
    Shape along;
    for (int d = 0; d < shape().rank(); ++d) along.push_back(d == attrs_.dim ? classes() : Dim(1));
    return expand_to(reshape_to(weight_, along), shape());
  }
  /// The weight of each sample: 0 where it is ignored.
  Tensor sample_weight() const {
    if (!weight_.defined()) return ops::counted(target_, attrs_.ignore_index, x_.tensor().dtype());
    return neg(ops::nll(spread_weight(), target_, attrs_, x_.where()));
  }
  /// Reduces losses per sample, which are 0 where ignored and not weighted yet.
  Tensor weighted(const Tensor& loss) const {
    const bool mean = averaging_ == Averaging::mean;
    const Tensor weight = weight_.defined() || mean ? sample_weight() : Tensor();
    return reduce(weight_.defined() ? mul(loss, weight) : loss, weight);
  }
  /// The same for losses weighted already.
  Tensor reduce(const Tensor& loss, const Tensor& weight) const {
    if (averaging_ == Averaging::none) return loss;
    const Tensor total = sum(Operand(loss, x_.where()));
    return averaging_ == Averaging::sum ? total : div(total, sum(weight));
  }
  Averaging averaging() const { return averaging_; }

 private:
  const Shape& shape() const { return x_.tensor().impl().shape(); }

  Operand x_;
  const Tensor &target_, &weight_;
  Averaging averaging_;
  ops::ClassLossAttrs attrs_;
};

// PyTorch's mixture: (1 - s) * nll + s / C * the sum of all classes' losses.
Tensor smoothed(Operand x, const Tensor& target, const Tensor& weight, const ClassReduction& r,
                Scalar smoothing) {
  const Tensor logp = log_softmax(x, r.attrs().dim);
  const Tensor hard = r.weighted(ops::nll(logp, target, r.attrs(), x.where()));
  const Tensor each = neg(sum(weight.defined() ? mul(logp, r.spread_weight()) : logp, r.attrs().dim));
  const Tensor counted = ops::counted(target, r.attrs().ignore_index, logp.dtype());
  const Tensor even =
      r.reduce(mul(each, counted), r.averaging() == Averaging::mean ? r.sample_weight() : Tensor());
  return add(mul(hard, Scalar(1.0) - smoothing), mul(even, smoothing / Scalar(r.classes())));
}

Tensor probability_loss(Operand x, const Tensor& target, const Tensor& weight, const ClassReduction& r,
                        Scalar smoothing) {
  if (!is_floating(target.dtype()))
    fail(Category::dtype_mismatch, "cross_entropy", "class probabilities must be floating", x.where());
  const Tensor logp = log_softmax(x, r.attrs().dim);
  const bool smooth = !(smoothing == Scalar(0.0));
  const Tensor mixed =
      smooth ? add(mul(target, Scalar(1.0) - smoothing), smoothing / Scalar(r.classes())) : target;
  const Tensor product = mul(logp, mixed);
  const Tensor loss = neg(sum(weight.defined() ? mul(product, r.spread_weight()) : product, r.attrs().dim));
  return ops::reduce_loss(loss, r.averaging());
}

Tensor per_sample(Operand x, const Tensor& target, ops::ClassLossAttrs attrs) {
  TensorImpl* operands[] = {x.tensor().get(), target.get()};
  Tensor results[2];
  Emitter::current().emit({&ops::info<ops::CrossEntropy>, operands, &attrs, effective_location(x.where()), 2},
                          results);
  return results[0];
}

}  // namespace

Tensor cross_entropy(Operand input, const Tensor& wanted, const Tensor& class_weight, LossReduction reduction,
                     int64_t ignore_index, Scalar label_smoothing) {
  const NamedCall call("cross_entropy", input.where());
  const ops::AutocastFunction cast(CastPolicy::float32, {&input.tensor(), &wanted, &class_weight});
  const Tensor logits = cast(input), target = cast(wanted), weight = cast(class_weight);
  const Operand x(logits, input.where());
  const ClassReduction r(x, target, weight, ignore_index, reduction, "cross_entropy");
  if (!(Scalar(0.0) <= label_smoothing && label_smoothing <= Scalar(1.0)))
    fail(Category::bad_argument, "cross_entropy",
         fmt::format("label_smoothing {} is not in [0, 1]", to_string(label_smoothing)), x.where());
  if (target.impl().shape() == x.tensor().impl().shape())
    return probability_loss(x, target, weight, r, label_smoothing);
  if (!(label_smoothing == Scalar(0.0))) return smoothed(x, target, weight, r, label_smoothing);
  return r.weighted(per_sample(x, target, r.attrs()));
}

Tensor nll_loss(Operand input, const Tensor& target, const Tensor& class_weight, LossReduction reduction,
                int64_t ignore_index) {
  const NamedCall call("nll_loss", input.where());
  const ops::AutocastFunction cast(CastPolicy::float32, {&input.tensor(), &class_weight});
  const Tensor logp = cast(input), weight = cast(class_weight);
  const Operand x(logp, input.where());
  if (weight.defined() && weight.dtype() != x.tensor().dtype())
    fail(Category::dtype_mismatch, "nll_loss", "input and weight have different dtypes", x.where());
  const ClassReduction r(x, target, weight, ignore_index, reduction, "nll_loss");
  return r.weighted(ops::nll(x.tensor(), target, r.attrs(), x.where()));
}

}  // namespace retrograd
