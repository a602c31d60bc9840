// Type rules, derivatives and public functions of ops/scan.h.
#include "ops/scan.h"

#include "engine/autocast.h"
#include "engine/named_call.h"
#include "ops/arithmetic.h"
#include "ops/attributes.h"
#include "ops/reduce.h"
#include "ops/shape_ops.h"

namespace retrograd::inline v0 {
namespace ops {

void Scan::infer(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl& x = *call.operands[0];
  if (is_float8(x.dtype())) fail_call(call, Category::dtype_mismatch, "it is not defined for float8");
  check_dim(call, call.attrs_as<Attrs>().dim);
  for (const TensorImpl* other : call.operands.subspan(1)) {
    if (other->dtype() != x.dtype())
      fail_call(call, Category::dtype_mismatch, "operands have different dtypes");
    if (!(other->shape() == x.shape()))
      fail_call(call, Category::shape_mismatch, "operands have different shapes");
  }
  outputs[0]->set_type(x.dtype(), x.device(), x.shape());
}

namespace {

template <class Op>
Tensor scan(const Tensor& x, ScanAttrs attrs, SourceLocation where) {
  return emit<Op>({x.get()}, attrs, where);
}

Tensor recurrence(const Tensor& a, const Tensor& b, ScanAttrs attrs, SourceLocation where) {
  return emit<Recurrence>({a.get(), b.get()}, attrs, where);
}

ScanAttrs reversed(ScanAttrs attrs) {
  attrs.reverse = !attrs.reverse;
  return attrs;
}

}  // namespace

Tensor CumSum::transpose(RuleContext& c, int, const Tensor& g) {
  return scan<CumSum>(g, reversed(c.attrs<Attrs>()), c.where());
}

// An exclusive product is the inclusive one shifted, with 1 in front: so is its derivative. In reverse a[i+1]
// multiplies y[i+1], while x[i] multiplies y[i+1] in a reversed product: there the coefficients are shifted.
void CumProd::vjp(RuleContext& c) {
  ScanAttrs a = c.attrs<Attrs>();
  const Tensor x = c.in(0).tensor();
  const Tensor g = a.exclusive ? scan<Shift>(c.grad(), reversed({a.dim, a.reverse}), c.where()) : c.grad();
  const ScanAttrs back{a.dim, !a.reverse};
  const Tensor coefficients = a.reverse ? scan<Shift>(x, {a.dim}, c.where()) : x;
  c.give(0, mul(recurrence(coefficients, g, back, c.where()), exclusive_cumprod(x, a.dim, a.reverse)));
}

void CumProd::jvp(TangentContext& c) {
  ScanAttrs a = c.attrs<Attrs>();
  const Tensor x = c.in(0).tensor();
  const Tensor source = mul(c.tangent(0), exclusive_cumprod(x, a.dim, a.reverse));
  const Tensor coefficients = a.reverse ? scan<Shift>(x, {a.dim}, c.where()) : x;
  const Tensor y = recurrence(coefficients, source, {a.dim, a.reverse}, c.where());
  c.give(0, a.exclusive ? scan<Shift>(y, {a.dim, a.reverse}, c.where()) : y);
}

// With l = the recurrence of g in the other direction: db = l, and a[i] gets the product of y and l on the
// two sides of the link i.
void Recurrence::vjp(RuleContext& c) {
  const ScanAttrs a = c.attrs<Attrs>();
  const Tensor l = recurrence(c.in(0).tensor(), c.grad(), reversed(a), c.where());
  if (c.needs(1)) c.give(1, l);
  if (!c.needs(0)) return;
  const Tensor &before = a.reverse ? l : c.out(), &at = a.reverse ? c.out() : l;
  c.give(0, mul(scan<Shift>(before, {a.dim}, c.where()), at));
}

void Recurrence::jvp(TangentContext& c) {
  const ScanAttrs a = c.attrs<Attrs>();
  Tensor source = c.tangent(1);
  if (c.needs(0)) {
    const Tensor term = a.reverse ? scan<Shift>(mul(c.tangent(0), c.out()), {a.dim, true}, c.where())
                                  : mul(c.tangent(0), scan<Shift>(c.out(), {a.dim}, c.where()));
    source = plus(source, term);
  }
  c.give(0, recurrence(c.in(0).tensor(), source, a, c.where()));
}

Tensor Shift::transpose(RuleContext& c, int, const Tensor& g) {
  return scan<Shift>(g, reversed(c.attrs<Attrs>()), c.where());
}

Tensor exclusive_cumprod(Operand x, int64_t dim, bool reverse) {
  return scan<CumProd>(x.tensor(), {dim, reverse, true}, x.where());
}

}  // namespace ops

namespace {

template <class Op>
Tensor scan_along(Operand x, int64_t dim, std::optional<ScalarType> dtype) {
  const detail::AutocastOff as_asked(dtype.has_value());
  const int64_t along = wrap_dim(dim, x.tensor().impl().rank(), Op::name);
  Tensor input = x.tensor();
  if (dtype)
    input = to(x, *dtype);
  else if (is_integral(input.dtype(), true))
    input = to(x, kInt64);
  return ops::emit<Op>({input.get()}, {along, false, false}, x.where());
}

}  // namespace

Tensor cumsum(Operand x, int64_t dim, std::optional<ScalarType> dtype) {
  const NamedCall call("cumsum", x.where());
  return scan_along<ops::CumSum>(x, dim, dtype);
}
Tensor cumprod(Operand x, int64_t dim, std::optional<ScalarType> dtype) {
  const NamedCall call("cumprod", x.where());
  return scan_along<ops::CumProd>(x, dim, dtype);
}

}  // namespace retrograd
