// Type rules, derivatives and public functions of ops/softmax.h.
#include "ops/softmax.h"

#include "engine/autocast.h"
#include "engine/named_call.h"
#include "ops/arithmetic.h"
#include "ops/attributes.h"
#include "ops/reduce.h"
#include "ops/shape_ops.h"
#include "ops/unary.h"

namespace retrograd::inline v0 {
namespace ops {

void SoftmaxLike::infer(const Call& call, TensorImpl* const* outputs) {
  check_floating(call);
  const TensorImpl& x = *call.operands[0];
  check_dim(call, call.attrs_as<Attrs>().dim);
  if (call.operands.size() == 2 && !(x.type() == call.operands[1]->type()))
    fail_call(call, Category::shape_mismatch, "gradient and result have different types");
  outputs[0]->set_type(x.dtype(), x.device(), x.shape());
}

Tensor softmax_backward(const Tensor& g, const Tensor& y, int64_t dim, SourceLocation where) {
  return emit<SoftmaxBackward>({g.get(), y.get()}, {dim}, where);
}

namespace {

Tensor log_softmax_backward(const Tensor& g, const Tensor& y, int64_t dim, SourceLocation where) {
  return emit<LogSoftmaxBackward>({g.get(), y.get()}, {dim}, where);
}

// The sum along the dim, expanded to the shape of x.
Tensor sum_along(const Tensor& x, int64_t dim) { return expand_to(sum(x, dim, true), x.impl().shape()); }

}  // namespace

void Softmax::vjp(RuleContext& c) {
  c.give(0, softmax_backward(c.grad(), c.out(), c.attrs<Attrs>().dim, c.where()));
}

void Softmax::jvp(TangentContext& c) {
  c.give(0, softmax_backward(c.tangent(0), c.out(), c.attrs<Attrs>().dim, c.where()));
}

void LogSoftmax::vjp(RuleContext& c) {
  c.give(0, log_softmax_backward(c.grad(), c.out(), c.attrs<Attrs>().dim, c.where()));
}

void LogSoftmax::jvp(TangentContext& c) {
  const Tensor t = c.tangent(0);
  c.give(0, sub(t, sum_along(mul(exp(c.out()), t), c.attrs<Attrs>().dim)));
}

// With v the gradient: dg as above with v for g, and dy = v * (g - sum(g y)) - g * sum(v y).
void SoftmaxBackward::vjp(RuleContext& c) {
  const int64_t dim = c.attrs<Attrs>().dim;
  const Tensor v = c.grad(), y = c.in(1).tensor();
  if (c.needs(0)) c.give(0, softmax_backward(v, y, dim, c.where()));
  if (!c.needs(1)) return;
  const Tensor g = c.in(0).tensor();
  c.give(1, sub(mul(v, sub(g, sum_along(mul(g, y), dim))), mul(g, sum_along(mul(v, y), dim))));
}

void SoftmaxBackward::jvp(TangentContext& c) {
  const int64_t dim = c.attrs<Attrs>().dim;
  const Tensor g = c.in(0).tensor(), y = c.in(1).tensor();
  Tensor t = c.needs(0) ? softmax_backward(c.tangent(0), y, dim, c.where()) : Tensor();
  if (c.needs(1)) {
    const Tensor ty = c.tangent(1);
    t = plus(t, sub(mul(ty, sub(g, sum_along(mul(g, y), dim))), mul(y, sum_along(mul(g, ty), dim))));
  }
  c.give(0, t);
}

// dg = v - sum(v * exp(y)), dy = -v * exp(y) * sum(g).
void LogSoftmaxBackward::vjp(RuleContext& c) {
  const int64_t dim = c.attrs<Attrs>().dim;
  const Tensor v = c.grad(), weighted = mul(v, exp(c.in(1)));
  if (c.needs(0)) c.give(0, sub(v, sum_along(weighted, dim)));
  if (c.needs(1)) c.give(1, neg(mul(weighted, sum_along(c.in(0).tensor(), dim))));
}

void LogSoftmaxBackward::jvp(TangentContext& c) {
  const int64_t dim = c.attrs<Attrs>().dim;
  const Tensor y = c.in(1).tensor();
  Tensor t = c.needs(0) ? log_softmax_backward(c.tangent(0), y, dim, c.where()) : Tensor();
  if (c.needs(1)) t = plus(t, neg(mul(mul(exp(y), c.tangent(1)), sum_along(c.in(0).tensor(), dim))));
  c.give(0, t);
}

}  // namespace ops

namespace {

template <class Op>
Tensor along(Operand x, int64_t dim, std::optional<ScalarType> dtype) {
  const detail::AutocastOff as_asked(dtype.has_value());
  const Tensor input = dtype ? to(x, *dtype) : x.tensor();
  return ops::emit<Op>({input.get()}, {wrap_dim(dim, input.impl().rank(), Op::name)}, x.where());
}

}  // namespace

Tensor softmax(Operand x, int64_t dim, std::optional<ScalarType> dtype) {
  const NamedCall call("softmax", x.where());
  return along<ops::Softmax>(x, dim, dtype);
}
Tensor log_softmax(Operand x, int64_t dim, std::optional<ScalarType> dtype) {
  const NamedCall call("log_softmax", x.where());
  return along<ops::LogSoftmax>(x, dim, dtype);
}

}  // namespace retrograd
