// Losses between tensors: see ops/losses.h.
#include "ops/losses.h"

#include "engine/autocast.h"
#include "engine/named_call.h"
#include "ops/activations.h"
#include "ops/arithmetic.h"
#include "ops/comparison.h"
#include "ops/likelihood_losses.h"
#include "ops/loss_reduction.h"
#include "ops/shape_ops.h"
#include "ops/ternary.h"
#include "ops/unary.h"

namespace retrograd::inline v0 {

namespace {

void check_positive(const Call& call, Scalar bound, std::string_view name) {
  if (bound.number().as_double() <= 0)
    fail_call(call, Category::bad_argument, fmt::format("{} is not positive", name));
}

}  // namespace

void ops::Huber::infer(const Call& call, TensorImpl* const* outputs) {
  check_positive(call, call.attrs_as<Attrs>().delta, "delta");
  infer_elementwise(call, outputs);
}

void ops::SmoothL1::infer(const Call& call, TensorImpl* const* outputs) {
  check_positive(call, call.attrs_as<Attrs>().beta, "beta");
  infer_elementwise(call, outputs);
}

namespace {

using ops::check_same_shape;
using ops::parse_reduction;
using ops::reduce_loss;

// A weight broadcasts to the losses, and not the other way round.
void check_weight(Operand x, const Tensor& weight, std::string_view op) {
  if (!weight.defined()) return;
  const Shape& shape = x.tensor().impl().shape();
  if (!(broadcast_shapes(shape, weight.impl().shape(), op, x.where()) == shape))
    fail(Category::shape_mismatch, op,
         fmt::format("a weight {} does not broadcast to {}", describe(weight), describe(x.tensor())),
         x.where());
}

// f(input, target) in the wider dtype, for any numbers of dims: both are broadcast first.
template <class F>
Tensor in_wider_dtype(const F& f, Operand x, const Tensor& target) {
  const ops::AutocastFunction cast(CastPolicy::float32, {&x.tensor(), &target});
  const Tensor a = cast(x), b = cast(Operand(target, x.where()));
  const ScalarType common = a.dtype() == b.dtype() ? a.dtype() : promote_types(a.dtype(), b.dtype());
  return f(to(Operand(a, x.where()), common), to(Operand(b, x.where()), common));
}

Tensor difference(Operand x, const Tensor& target) {
  return in_wider_dtype([](const Operand& a, const Operand& b) { return sub(a, b); }, x, target);
}

}  // namespace

Tensor mse_loss(Operand x, const Tensor& target, LossReduction reduction) {
  const NamedCall call("mse_loss", x.where());
  const auto averaging = parse_reduction(reduction, "mse_loss", x.where());
  return reduce_loss(in_wider_dtype(ops::Function<ops::SquaredDifference>(), x, target), averaging);
}

Tensor l1_loss(Operand x, const Tensor& target, LossReduction reduction) {
  const NamedCall call("l1_loss", x.where());
  const auto averaging = parse_reduction(reduction, "l1_loss", x.where());
  return reduce_loss(abs(difference(x, target)), averaging);
}

Tensor smooth_l1_loss(Operand x, const Tensor& target, LossReduction reduction, Scalar beta) {
  const NamedCall call("smooth_l1_loss", x.where());
  const auto averaging = parse_reduction(reduction, "smooth_l1_loss", x.where());
  if (beta < Scalar(0))
    fail(Category::bad_argument, "smooth_l1_loss", fmt::format("beta {} is negative", to_string(beta)),
         x.where());
  if (beta == Scalar(0)) return l1_loss(x, target, reduction);
  const Tensor d = difference(x, target);
  return reduce_loss(ops::emit<ops::SmoothL1>({d.get()}, {beta}, x.where()), averaging);
}

Tensor huber_loss(Operand x, const Tensor& target, LossReduction reduction, Scalar delta) {
  const NamedCall call("huber_loss", x.where());
  const auto averaging = parse_reduction(reduction, "huber_loss", x.where());
  if (delta <= Scalar(0))
    fail(Category::bad_argument, "huber_loss", fmt::format("delta {} is not positive", to_string(delta)),
         x.where());
  const Tensor d = difference(x, target);
  return reduce_loss(ops::emit<ops::Huber>({d.get()}, {delta}, x.where()), averaging);
}

Tensor binary_cross_entropy(Operand x, const Tensor& target, const Tensor& weight, LossReduction reduction) {
  const NamedCall call("binary_cross_entropy", x.where());
  const auto averaging = parse_reduction(reduction, "binary_cross_entropy", x.where());
  check_same_shape(x, target, "binary_cross_entropy");
  check_weight(x, weight, "binary_cross_entropy");
  if (x.tensor().dtype() != target.dtype() && !is_autocast_enabled())
    fail(Category::dtype_mismatch, "binary_cross_entropy",
         fmt::format("{} and {} have different dtypes", describe(x.tensor()), describe(target)), x.where());
  const Tensor loss = ops::Function<ops::BinaryCrossEntropy>()(x, target);
  ops::check_range(x, {0.0, 1.0});
  ops::check_range(Operand(target, x.where()), {0.0, 1.0});
  return reduce_loss(weight.defined() ? mul(loss, weight) : loss, averaging);
}

Tensor binary_cross_entropy_with_logits(Operand x, const Tensor& target, const Tensor& weight,
                                        const Tensor& pos_weight, LossReduction reduction) {
  const NamedCall call("binary_cross_entropy_with_logits", x.where());
  const auto averaging = parse_reduction(reduction, "binary_cross_entropy_with_logits", x.where());
  check_same_shape(x, target, "binary_cross_entropy_with_logits");
  check_weight(x, weight, "binary_cross_entropy_with_logits");
  check_weight(x, pos_weight, "binary_cross_entropy_with_logits");
  const Tensor loss = ops::Function<ops::BceWithLogits>()(
      x, target, pos_weight.defined() ? Operand(pos_weight, x.where()) : Operand(1.0));
  return reduce_loss(weight.defined() ? mul(loss, weight) : loss, averaging);
}

// The logarithm of a zero target is not taken.
Tensor kl_div(Operand x, const Tensor& target, LossReduction reduction, bool log_target) {
  const NamedCall call("kl_div", x.where());
  const bool by_batch = reduction.name() == "batchmean", has_batch = x.tensor().dim() > 0;
  const auto averaging = parse_reduction(by_batch ? LossReduction::Sum : reduction, "kl_div", x.where());
  const ops::AutocastFunction cast(CastPolicy::float32, {&x.tensor(), &target});
  const Tensor input = cast(x), wanted = cast(target);
  Tensor loss;
  if (log_target) {
    loss = mul(exp(wanted), sub(wanted, input));
  } else {
    // The gradient of a target of 0 is NaN, as in PyTorch.
    loss = sub(where(eq(wanted, 0), 0.0, mul(wanted, log(wanted))), mul(wanted, input));
  }
  const Tensor reduced = reduce_loss(loss, averaging);
  return by_batch && has_batch ? div(reduced, Scalar(x.tensor().impl().shape()[0])) : reduced;
}

namespace {

// The norm along `dim`, at least eps; as in PyTorch the bound does not stop the gradient.
Tensor bounded_norm(Operand x, int64_t dim, Scalar eps) {
  const Tensor length = vector_norm(x, 2, dim, true);
  return add(length, detach(sub(clamp(length, eps), length)));
}

}  // namespace

Tensor cosine_similarity(Operand x1, const Tensor& x2, int64_t dim, Scalar eps) {
  const NamedCall call("cosine_similarity", x1.where());
  const ops::AutocastFunction cast(CastPolicy::float32, {&x1.tensor(), &x2});
  const Shape shape = broadcast_shapes(x1.tensor().impl().shape(), x2.impl().shape(), "cosine_similarity");
  const Tensor a = expand_to(cast(x1), shape), b = expand_to(cast(x2), shape);
  const auto unit = [&](const Tensor& x) {
    return div(Operand(x, x1.where()), bounded_norm(Operand(x, x1.where()), dim, eps));
  };
  return sum(mul(unit(a), unit(b)), dim);
}

}  // namespace retrograd
