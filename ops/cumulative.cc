// See ops/cumulative.h.
#include "ops/cumulative.h"

#include <limits>

#include "engine/named_call.h"
#include "ops/arithmetic.h"
#include "ops/attributes.h"
#include "ops/comparison.h"
#include "ops/creation.h"
#include "ops/reduce.h"
#include "ops/scan.h"
#include "ops/shape_ops.h"
#include "ops/ternary.h"
#include "ops/unary.h"

namespace retrograd::inline v0 {
namespace ops {

void CumExtreme::infer(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl& x = *call.operands[0];
  if (is_float8(x.dtype())) fail_call(call, Category::dtype_mismatch, "it is not defined for float8");
  checked_dim(call, call.attrs_as<Attrs>().dim, x.rank());
  outputs[0]->set_type(x.dtype(), x.device(), x.shape());
  outputs[1]->set_type(kInt64, x.device(), x.shape());
}

void CumExtreme::vjp(RuleContext& c) {
  if (!c.grad().defined()) return;
  c.give(0, scatter_add(Operand(repeated_zero(c.type(0), c.where()), c.where()), c.attrs<Attrs>().dim,
                        c.out(1), c.grad()));
}

void CumExtreme::jvp(TangentContext& c) {
  c.give(0, gather(Operand(c.tangent(0), c.where()), c.attrs<Attrs>().dim, c.out(1)));
}

void LogCumSumExp::infer(const Call& call, TensorImpl* const* outputs) {
  check_floating(call);
  check_dim(call, call.attrs_as<Attrs>().dim);
  const TensorImpl& x = *call.operands[0];
  outputs[0]->set_type(x.dtype(), x.device(), x.shape());
}

namespace {

/// The weights of an element and of all before it, in float64.
struct Weights {
  Tensor own, before;
};

// An element of weight nothing in a sum of nothing has the weight 0. `before` of the first element is not used.
Weights weights_of(const Tensor& input, int64_t dim, SourceLocation location) {
  const double inf = std::numeric_limits<double>::infinity();
  const Tensor x = to(input, kFloat64), y = logcumsumexp(x, dim);
  const Tensor earlier = emit<Shift>({y.get()}, {dim}, location);
  const Tensor growth = where(eq(earlier, y), 0.0, sub(earlier, y));  // infinities are equal, too
  return {exp(where(eq(y, -inf), -inf, sub(x, y))), exp(clamp(growth, {}, 0.0))};
}

}  // namespace

void LogCumSumExp::vjp(RuleContext& c) {
  const int64_t dim = c.attrs<Attrs>().dim;
  const Weights w = weights_of(c.in(0).tensor(), dim, c.where());
  const Tensor from = to(c.grad(), kFloat64);
  const Tensor g = emit<Recurrence>({w.before.get(), from.get()}, {dim, true}, c.where());
  c.give(0, to(mul(w.own, g), c.type(0).dtype));
}

void LogCumSumExp::jvp(TangentContext& c) {
  const int64_t dim = c.attrs<Attrs>().dim;
  const Weights w = weights_of(c.in(0).tensor(), dim, c.where());
  const Tensor own = mul(w.own, to(c.tangent(0), kFloat64));
  c.give(0, to(emit<Recurrence>({w.before.get(), own.get()}, {dim}, c.where()), c.type(0).dtype));
}

}  // namespace ops

namespace {

template <class Op>
ValuesAndIndices extreme_so_far(Operand x, int64_t dim) {
  const Shape shape = x.tensor().impl().shape();
  ops::DimAttrs attrs{wrap_dim(dim, shape.rank(), Op::name)};
  const Tensor from = shape.rank() ? x.tensor() : reshape_to(x, {1});
  TensorImpl* operand = from.get();
  Tensor results[2];
  Emitter::current().emit({&ops::info<Op>, {&operand, 1}, &attrs, effective_location(x.where()), 2}, results);
  if (shape.rank() == 0)
    for (Tensor& r : results) r = reshape_to(Operand(r, x.where()), {});
  return {results[0], results[1]};
}

}  // namespace

ValuesAndIndices cummax(Operand x, int64_t dim) {
  const NamedCall call("cummax", x.where());
  return extreme_so_far<ops::CumMax>(x, dim);
}

ValuesAndIndices cummin(Operand x, int64_t dim) {
  const NamedCall call("cummin", x.where());
  return extreme_so_far<ops::CumMin>(x, dim);
}

Tensor logcumsumexp(Operand x, int64_t dim) {
  const NamedCall call("logcumsumexp", x.where());
  return ops::emit<ops::LogCumSumExp>({x.tensor().get()},
                                      {wrap_dim(dim, x.tensor().impl().rank(), "logcumsumexp")}, x.where());
}

}  // namespace retrograd
