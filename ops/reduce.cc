// Type rules, derivatives and public functions of ops/reduce.h.
#include "ops/reduce.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "engine/autocast.h"
#include "engine/named_call.h"
#include "ops/arithmetic.h"
#include "ops/attributes.h"
#include "ops/binary.h"
#include "ops/comparison.h"
#include "ops/creation.h"
#include "ops/index_ops.h"
#include "ops/scan.h"
#include "ops/shape_ops.h"
#include "ops/softmax.h"
#include "ops/ternary.h"
#include "ops/unary.h"
#include "ops/widened.h"

namespace retrograd::inline v0 {
namespace ops {

Shape reduced_shape(const Shape& shape, const IntList& dim, bool keepdim) {
  Shape out;
  int next = 0;
  for (int i = 0; i < shape.rank(); ++i) {
    const bool reduced = next < dim.size() && dim[next] == i;
    next += reduced;
    if (!reduced)
      out.push_back(shape[i]);
    else if (keepdim)
      out.push_back(1);
  }
  return out;
}

Dim reduced_numel(const Shape& shape, const IntList& dim) {
  Dim n = 1;
  for (int64_t d : dim) n *= shape[static_cast<int>(d)];
  return n;
}

IntList reduction_dims(const IntList& dims, int rank, std::string_view op) {
  IntList out;
  if (dims.empty()) {
    for (int i = 0; i < rank; ++i) out.push_back(i);
    return out;
  }
  for (int64_t d : dims) {
    const int wrapped = wrap_dim(d, rank, op);
    if (rank > 0) out.push_back(wrapped);
  }
  std::sort(out.values, out.values + out.count);
  for (int i = 1; i < out.size(); ++i)
    if (out[i] == out[i - 1]) fail(Category::bad_dim, op, fmt::format("dim {} is given twice", out[i]));
  return out;
}

Tensor expand_reduced(const Tensor& g, const Shape& shape, const IntList& dim, bool keepdim,
                      SourceLocation where) {
  const Tensor kept = keepdim ? g : reshape_to(Operand(g, where), reduced_shape(shape, dim, true));
  return expand_to(Operand(kept, where), shape);
}

void check_floating(const Call& call) {
  const ScalarType dtype = call.operands[0]->dtype();
  if (!is_floating(dtype) || is_float8(dtype))
    fail_call(call, Category::dtype_mismatch, "it is defined for float64, float32, float16 and bfloat16");
}

namespace {

const ReduceAttrs& reduce_attrs(const Call& call) { return call.attrs_as<ReduceAttrs>(); }

void set_reduced_type(const Call& call, ScalarType dtype, TensorImpl* const* outputs) {
  const TensorImpl& x = *call.operands[0];
  if (is_float8(x.dtype())) fail_call(call, Category::dtype_mismatch, "it is not defined for float8");
  const ReduceAttrs& a = reduce_attrs(call);
  check_dims(call, a.dim);
  outputs[0]->set_type(dtype, x.device(), reduced_shape(x.shape(), a.dim, a.keepdim));
}

void check_not_empty(const Call& call) {
  check_dims(call, reduce_attrs(call).dim);
  if (reduced_numel(call.operands[0]->shape(), reduce_attrs(call).dim) == Dim(0))
    fail_call(call, Category::bad_argument, "there are no elements to choose from");
}

// For ops along one dim; a number has none. `or_all`: or along all dims together.
void check_one_dim(const Call& call, bool or_all) {
  const int n = reduce_attrs(call).dim.size(), rank = call.operands[0]->rank();
  if (n != std::min(rank, 1) && !(or_all && n == rank))
    fail_call(call, Category::bad_dim,
              fmt::format("it goes along one dim{}, not {}", or_all ? " or all" : "", n));
}

// A result, or a tensor of its shape, expanded to the operand's shape.
template <class C>
Tensor restored(C& c, const Tensor& reduced) {
  const auto& a = c.template attrs<ReduceAttrs>();
  return expand_reduced(reduced, c.type(0).shape, a.dim, a.keepdim, c.where());
}

// The derivative of a reduction in either direction: g * slope and sum(t * slope), where `slope` is the derivative by
// the operand. It may have a wider dtype.
void give_product(RuleContext& c, const Tensor& slope) {
  const Widened wide(c.grad());
  c.give(0, wide.back(mul(restored(c, to(c.grad(), slope.dtype())), slope)));
}

void give_dot(TangentContext& c, const Tensor& slope) {
  const auto& a = c.attrs<ReduceAttrs>();
  const Widened wide(c.tangent(0));
  c.give(0, wide.back(sum(mul(to(c.tangent(0), slope.dtype()), slope), a.dim, a.keepdim)));
}

Tensor one_where_zero(const Tensor& x) { return where(eq(x, 0), 1.0, x); }

}  // namespace

void Reduce::infer(const Call& call, TensorImpl* const* outputs) {
  set_reduced_type(call, call.operands[0]->dtype(), outputs);
}

Tensor Sum::transpose(RuleContext& c, int, const Tensor& g) { return restored(c, g); }

void Mean::infer(const Call& call, TensorImpl* const* outputs) {
  check_floating(call);
  Reduce::infer(call, outputs);
}

Tensor Mean::transpose(RuleContext& c, int, const Tensor& g) {
  return restored(c, div(g, Scalar(reduced_numel(c.type(0).shape, c.attrs<Attrs>().dim))));
}

namespace {

// The product of all other elements, for each element along the reduced dims.
Tensor product_of_others(const Tensor& x, const IntList& dims, const Shape& shape) {
  const auto others = [](const Tensor& t, int64_t dim) {
    return mul(exclusive_cumprod(t, dim, false), exclusive_cumprod(t, dim, true));
  };
  if (dims.size() == 1) return others(x, dims[0]);
  if (dims.size() == shape.rank()) return reshape_to(others(reshape_to(x, {shape.numel()}), 0), shape);
  // The dims as one, behind the others.
  IntArray order, back(static_cast<size_t>(shape.rank()));
  Shape sizes;
  Dim n = 1;
  for (int i = 0; i < shape.rank(); ++i)
    if (std::find(dims.begin(), dims.end(), i) == dims.end()) order.push_back(i), sizes.push_back(shape[i]);
  for (int64_t d : dims) order.push_back(d), n *= shape[static_cast<int>(d)];
  sizes.push_back(n);
  for (size_t i = 0; i < order.size(); ++i) back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  const Tensor last = permute(Operand(x), order);
  const Tensor found = others(reshape_to(Operand(last), sizes), sizes.rank() - 1);
  return permute(Operand(reshape_to(Operand(found), last.impl().shape())), back);
}

}  // namespace

// The smallest normal number of a floating dtype.
double least_normal(ScalarType dtype) {
  return dtype == kFloat64 ? 0x1p-1022 : dtype == kFloat16 ? 0x1p-14 : 0x1p-126;
}

// Where the product has left the range, or has lost digits, so that it cannot be divided again.
template <class C>
Tensor is_out_of_range(C& c, const Tensor& product) {
  const Tensor size = abs(product);
  return restored(c, logical_or(lt(size, least_normal(c.type(0).dtype)), logical_not(isfinite(size))));
}

template <class C>
Tensor Prod::slope(C& c) {
  const Widened wide(c.in(0).tensor());
  const Tensor x = wide(c.in(0).tensor()), direct = logical_or(eq(x, 0), is_out_of_range(c, c.out()));
  const Tensor others = product_of_others(x, c.template attrs<Attrs>().dim, c.type(0).shape);
  const Tensor product = where(direct, 1.0, restored(c, wide(c.out())));
  return where(direct, others, div(product, where(direct, 1.0, x)));
}

void Prod::vjp(RuleContext& c) { give_product(c, slope(c)); }

void Prod::jvp(TangentContext& c) { give_dot(c, slope(c)); }

void Extreme::infer(const Call& call, TensorImpl* const* outputs) {
  check_not_empty(call);
  Reduce::infer(call, outputs);
}

namespace {

// 1 over the number of ties at each tie, 0 elsewhere. With nan_ties each NaN is a tie (then the extreme is NaN), else
// NaN equals nothing.
template <class C>
Tensor tie_shares(C& c, const Tensor& x, const Tensor& y, bool nan_ties) {
  const Tensor equals = eq(x, restored(c, y));
  const Tensor ties = to(nan_ties ? logical_or(equals, isnan(x)) : equals, c.type(0).dtype);
  const auto& a = c.template attrs<ReduceAttrs>();
  return div(ties, restored(c, sum(ties, a.dim, a.keepdim)));
}

}  // namespace

void Extreme::vjp(RuleContext& c) {
  c.give(0, mul(restored(c, c.grad()), tie_shares(c, c.in(0).tensor(), c.out(), c.attrs<Attrs>().nan_ties)));
}

void Extreme::jvp(TangentContext& c) {
  give_dot(c, tie_shares(c, c.in(0).tensor(), c.out(), c.attrs<Attrs>().nan_ties));
}

void ExtremeAlong::infer(const Call& call, TensorImpl* const* outputs) {
  check_not_empty(call);
  check_one_dim(call, false);
  Reduce::infer(call, outputs);
  outputs[1]->set_type(kInt64, outputs[0]->device(), outputs[0]->shape());
}

void ExtremeAlong::vjp(RuleContext& c) {
  const Attrs& a = c.attrs<Attrs>();
  const TensorType type = c.type(0);
  if (type.shape.empty()) return c.give(0, c.grad());
  const Shape kept = reduced_shape(type.shape, a.dim, true);
  const Tensor index = reshape_to(c.out(1), kept), g = reshape_to(c.grad(), kept);
  c.give(0, scatter_add(repeated_zero(type, c.where()), a.dim[0], index, g));
}

void ExtremeAlong::jvp(TangentContext& c) {
  const Attrs& a = c.attrs<Attrs>();
  const Shape& shape = c.type(0).shape;
  if (shape.empty()) return c.give(0, c.tangent(0));
  const Tensor index = reshape_to(c.out(1), reduced_shape(shape, a.dim, true));
  c.give(0, reshape_to(gather(c.tangent(0), a.dim[0], index), c.out_type().shape));
}

void ExtremeIndex::infer(const Call& call, TensorImpl* const* outputs) {
  check_not_empty(call);
  check_one_dim(call, true);
  if (call.operands[0]->dtype() == kBool)
    fail_call(call, Category::dtype_mismatch, "it is not defined for bool");
  set_reduced_type(call, kInt64, outputs);
}

void Var::infer(const Call& call, TensorImpl* const* outputs) {
  check_floating(call);
  Reduce::infer(call, outputs);
}

namespace {

template <class C>
Tensor centered(C& c) {
  const Widened wide(c.in(0).tensor());
  const Tensor x = wide(c.in(0).tensor());
  return sub(x, expand_to(mean(x, c.template attrs<VarianceAttrs>().dim, true), c.type(0).shape));
}

template <class C>
Scalar degrees_of_freedom(C& c) {
  const auto& a = c.template attrs<VarianceAttrs>();
  return Scalar(reduced_numel(c.type(0).shape, a.dim)) - a.correction;
}

// d var / dx = 2 (x - mean) / (n - correction).
template <class C>
Tensor variance_slope(C& c) {
  return mul(centered(c), Scalar(2.0) / degrees_of_freedom(c));
}

// d std / dx = ((x - mean) / std) / (n - correction), and 0 where std is 0.
template <class C>
Tensor deviation_slope(C& c) {
  const Widened wide(c.out());
  const Tensor y = wide(c.out());
  const Tensor root = where(eq(y, 0), std::numeric_limits<double>::infinity(), y);
  return div(div(centered(c), restored(c, root)), degrees_of_freedom(c));
}

}  // namespace

void Var::vjp(RuleContext& c) { give_product(c, variance_slope(c)); }

void Var::jvp(TangentContext& c) { give_dot(c, variance_slope(c)); }

void Std::vjp(RuleContext& c) { give_product(c, deviation_slope(c)); }

void Std::jvp(TangentContext& c) { give_dot(c, deviation_slope(c)); }

void LogSumExp::infer(const Call& call, TensorImpl* const* outputs) {
  check_floating(call);
  Reduce::infer(call, outputs);
}

namespace {

// The derivative, softmax(x), in the wider dtype. exp(x - y) would not be exact: the rounding error of a large y is a
// large factor.
template <class C>
Tensor shares(C& c) {
  const auto& a = c.template attrs<ReduceAttrs>();
  const Widened wide(c.in(0).tensor());
  const Tensor x = wide(c.in(0).tensor());
  if (a.dim.size() == 1) return softmax(x, a.dim[0]);
  const Tensor unscaled = exp(sub(x, restored(c, detach(wide(c.out())))));
  return div(unscaled, restored(c, sum(unscaled, a.dim, a.keepdim)));
}

}  // namespace

void LogSumExp::vjp(RuleContext& c) {
  const Attrs& a = c.attrs<Attrs>();
  const Widened wide(c.grad());
  Tensor g = wide(c.grad());
  // A hook may have unpacked a different y, whose values count; for the same one the factor is 1.
  if (c.record().was_packed)
    g = mul(g, exp(detach(wide(sub(logsumexp(c.in(0), a.dim, a.keepdim), c.out())))));
  c.give(0, wide.back(mul(restored(c, g), shares(c))));
}

void LogSumExp::jvp(TangentContext& c) { give_dot(c, shares(c)); }

void VectorNorm::infer(const Call& call, TensorImpl* const* outputs) {
  check_floating(call);
  const double ord = call.attrs_as<Attrs>().ord.to_double();
  if (ord < 0 || std::isinf(ord)) check_not_empty(call);
  Reduce::infer(call, outputs);
}

namespace {

// d norm / dx as in PyTorch's norm_backward; 0 where the norm is 0. Powers of |x| / y, which is at most 1 for p >= 1,
// stay in the range.
template <class C>
Tensor norm_slope(C& c) {
  const Scalar p = c.template attrs<NormAttrs>().ord;
  const Tensor x = c.in(0).tensor(), y = c.out();
  if (p == Scalar(1)) return sign(x);
  if (p == Scalar(2)) return div(x, restored(c, one_where_zero(y)));
  const double inf = std::numeric_limits<double>::infinity();
  if (p == Scalar(inf) || p == Scalar(-inf)) return mul(sign(x), tie_shares(c, abs(x), y, true));
  const Widened wide(y);
  const Tensor root = p <= Scalar(1) ? wide(y) : one_where_zero(wide(y));
  const Tensor ratio = where(eq(x, 0), 1.0, div(abs(wide(x)), restored(c, root)));
  return mul(sign(wide(x)), pow(ratio, p - Scalar(1)));
}

}  // namespace

void VectorNorm::vjp(RuleContext& c) {
  if (c.attrs<Attrs>().ord == Scalar(0)) return;
  give_product(c, norm_slope(c));
}

void VectorNorm::jvp(TangentContext& c) {
  if (c.attrs<Attrs>().ord == Scalar(0)) return;
  give_dot(c, norm_slope(c));
}

void All::infer(const Call& call, TensorImpl* const* outputs) {
  set_reduced_type(call, call.operands[0]->dtype() == kUInt8 ? kUInt8 : kBool, outputs);
}

void CountNonzero::infer(const Call& call, TensorImpl* const* outputs) {
  set_reduced_type(call, kInt64, outputs);
}

}  // namespace ops

namespace {

template <class Op>
Tensor reduce(Operand x, const IntList& dim, bool keepdim) {
  typename Op::Attrs attrs{};
  attrs.dim = ops::reduction_dims(dim, x.tensor().impl().rank(), Op::name);
  attrs.keepdim = keepdim;
  return ops::emit<Op>({x.tensor().get()}, attrs, x.where());
}

template <class Op>
Tensor extreme_of_all(Operand x) {
  ops::ExtremeAttrs attrs{};
  attrs.dim = ops::reduction_dims({}, x.tensor().impl().rank(), Op::name);
  attrs.nan_ties = true;
  return ops::emit<Op>({x.tensor().get()}, attrs, x.where());
}

template <class Op>
ValuesAndIndices extreme_along(Operand x, int64_t dim, bool keepdim) {
  ops::ReduceAttrs attrs{ops::reduction_dims(dim, x.tensor().impl().rank(), Op::name), keepdim};
  TensorImpl* operand = x.tensor().get();
  Tensor results[2];
  Emitter::current().emit({&ops::info<Op>, {&operand, 1}, &attrs, effective_location(x.where()), 2}, results);
  return {results[0], results[1]};
}

// An index needs one dim or all dims; without a dim the index counts in row-major order, with or without keepdim.
template <class Op>
Tensor extreme_index(Operand x, std::optional<int64_t> dim, bool keepdim) {
  return reduce<Op>(x, dim ? IntList(*dim) : IntList(), keepdim);
}

template <class Op>
Tensor variance(Operand x, const IntList& dim, Scalar correction, bool keepdim) {
  typename Op::Attrs attrs{};
  attrs.dim = ops::reduction_dims(dim, x.tensor().impl().rank(), Op::name);
  attrs.keepdim = keepdim;
  attrs.correction = correction;
  return ops::emit<Op>({x.tensor().get()}, attrs, x.where());
}

// The operand in `dtype`, or else integers as int64.
Tensor accumulable(Operand x, std::optional<ScalarType> dtype) {
  if (dtype) return to(x, *dtype);
  return is_integral(x.tensor().dtype(), true) ? to(x, kInt64) : x.tensor();
}

}  // namespace

Tensor sum(Operand x, const IntList& dim, bool keepdim, std::optional<ScalarType> dtype) {
  const NamedCall call("sum", x.where());
  const detail::AutocastOff as_asked(dtype.has_value());
  return reduce<ops::Sum>(Operand(accumulable(x, dtype), x.where()), dim, keepdim);
}

Tensor mean(Operand x, const IntList& dim, bool keepdim, std::optional<ScalarType> dtype) {
  const NamedCall call("mean", x.where());
  if (!dtype) return reduce<ops::Mean>(x, dim, keepdim);
  return reduce<ops::Mean>(Operand(to(x, *dtype), x.where()), dim, keepdim);
}

Tensor prod(Operand x, std::optional<ScalarType> dtype) {
  const NamedCall call("prod", x.where());
  const detail::AutocastOff as_asked(dtype.has_value());
  return reduce<ops::Prod>(Operand(accumulable(x, dtype), x.where()), {}, false);
}

Tensor prod(Operand x, int64_t dim, bool keepdim, std::optional<ScalarType> dtype) {
  const NamedCall call("prod", x.where());
  const detail::AutocastOff as_asked(dtype.has_value());
  return reduce<ops::Prod>(Operand(accumulable(x, dtype), x.where()), dim, keepdim);
}

Tensor amax(Operand x, const IntList& dim, bool keepdim) {
  const NamedCall call("amax", x.where());
  return reduce<ops::Amax>(x, dim, keepdim);
}
Tensor amin(Operand x, const IntList& dim, bool keepdim) {
  const NamedCall call("amin", x.where());
  return reduce<ops::Amin>(x, dim, keepdim);
}
Tensor max(Operand x) {
  const NamedCall call("max", x.where());
  return extreme_of_all<ops::Amax>(x);
}
Tensor min(Operand x) {
  const NamedCall call("min", x.where());
  return extreme_of_all<ops::Amin>(x);
}

ValuesAndIndices max(Operand x, int64_t dim, bool keepdim) {
  const NamedCall call("max", x.where());
  return extreme_along<ops::MaxAlong>(x, dim, keepdim);
}
ValuesAndIndices min(Operand x, int64_t dim, bool keepdim) {
  const NamedCall call("min", x.where());
  return extreme_along<ops::MinAlong>(x, dim, keepdim);
}

Tensor argmax(Operand x, std::optional<int64_t> dim, bool keepdim) {
  const NamedCall call("argmax", x.where());
  return extreme_index<ops::Argmax>(x, dim, keepdim);
}
Tensor argmin(Operand x, std::optional<int64_t> dim, bool keepdim) {
  const NamedCall call("argmin", x.where());
  return extreme_index<ops::Argmin>(x, dim, keepdim);
}

Tensor var(Operand x, const IntList& dim, Scalar correction, bool keepdim) {
  const NamedCall call("var", x.where());
  return variance<ops::Var>(x, dim, correction, keepdim);
}
Tensor std(Operand x, const IntList& dim, Scalar correction, bool keepdim) {
  const NamedCall call("std", x.where());
  return variance<ops::Std>(x, dim, correction, keepdim);
}

Tensor logsumexp(Operand x, const IntList& dim, bool keepdim) {
  const NamedCall call("logsumexp", x.where());
  if (!is_integral(x.tensor().dtype(), true)) return reduce<ops::LogSumExp>(x, dim, keepdim);
  return reduce<ops::LogSumExp>(Operand(to(x, get_default_dtype()), x.where()), dim, keepdim);
}

Tensor vector_norm(Operand x, Scalar ord, const IntList& dim, bool keepdim) {
  const NamedCall call("vector_norm", x.where());
  ops::NormAttrs attrs{{ops::reduction_dims(dim, x.tensor().impl().rank(), "vector_norm"), keepdim}, ord};
  return ops::emit<ops::VectorNorm>({x.tensor().get()}, attrs, x.where());
}

Tensor norm(Operand x, Scalar p, const IntList& dim, bool keepdim) {
  const NamedCall call("norm", x.where());
  return vector_norm(x, p, dim, keepdim);
}

Tensor all(Operand x, const IntList& dim, bool keepdim) {
  const NamedCall call("all", x.where());
  return reduce<ops::All>(x, dim, keepdim);
}
Tensor any(Operand x, const IntList& dim, bool keepdim) {
  const NamedCall call("any", x.where());
  return reduce<ops::Any>(x, dim, keepdim);
}
Tensor count_nonzero(Operand x, const IntList& dim) {
  const NamedCall call("count_nonzero", x.where());
  return reduce<ops::CountNonzero>(x, dim, false);
}

}  // namespace retrograd
