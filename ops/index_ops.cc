// Type rules, derivatives and public functions of ops/index_ops.h.
#include "ops/index_ops.h"

#include <fmt/format.h>

#include "engine/named_call.h"
#include "ops/arithmetic.h"
#include "ops/attributes.h"
#include "ops/batching.h"
#include "ops/creation.h"
#include "ops/index_parts.h"
#include "ops/views.h"

namespace retrograd::inline v0 {
namespace ops {
namespace {

Operand at(const Tensor& t, SourceLocation where) { return Operand(t, where); }

void set_type(const Call& call, TensorImpl* const* outputs, const Shape& shape) {
  outputs[0]->set_type(call.operands[0]->dtype(), call.operands[0]->device(), shape);
}

// For index_add and index_copy: source is the input with `dim` as long as the index.
void infer_entries(const Call& call, TensorImpl* const* outputs) {
  const int d = indexed_dim(call, call.attrs_as<DimAttrs>().dim);
  const Shape& index = index_shape(call);
  const TensorImpl& source = *call.operands[2];
  check_same_dtype(call, source);
  if (index.rank() != 1) fail_call(call, Category::bad_dim, "the index has more than one dimension");
  Shape expected = call.operands[0]->shape();
  expected[d] = index[0];
  if (!(source.shape() == expected))
    fail_call(call, Category::shape_mismatch,
              fmt::format("the source should have shape {}", to_string(expected)));
  set_type(call, outputs, call.operands[0]->shape());
}

Tensor zeros_of_operand(RuleContext& c, int i) { return zeros_of(c.type(i), c.where()); }

// Forward mode of the ops (x, index, src) -> x with src written or added, all of which are linear in x and src.
void put_jvp(TangentContext& c) {
  const Tensor x = c.tangent_or_zeros(0), src = c.has_operand(2) ? c.tangent_or_zeros(2) : Tensor();
  TensorImpl* operands[] = {x.get(), c.call().operands[1], src.get()};
  Call call = c.call();
  call.operands = operands;
  Tensor result;
  Emitter::current().emit(call, &result);
  c.give(0, std::move(result));
}

}  // namespace

Tensor as_index(const Tensor& index, std::string_view op, SourceLocation where) {
  // No positions: any dtype.
  const bool is_empty = is_integral(index.dtype(), true) && index.impl().numel().hint() == 0;
  if (index.dtype() != kInt64 && index.dtype() != kInt32 && !is_empty)
    fail(Category::dtype_mismatch, op,
         fmt::format("an index must be int64 or int32, this is {}", describe(index)), where);
  return to(Operand(index, where), kInt64);
}

// ---- gather and scatter ---------------------------------------------------------------------------------------------

void Gather::infer(const Call& call, TensorImpl* const* outputs) {
  const int d = indexed_dim(call, call.attrs_as<Attrs>().dim);
  const Shape& index = index_shape(call);
  check_fits(call, index, call.operands[0]->shape(), d, false);
  set_type(call, outputs, index);
}

void Gather::vjp(RuleContext& c) {
  c.give(0, scatter_add(at(repeated_zero(c.type(0), c.where()), c.where()), c.attrs<Attrs>().dim,
                        c.in(1).tensor(), c.grad()));
}

void Gather::jvp(TangentContext& c) {
  c.give(0, gather(at(c.tangent(0), c.where()), c.attrs<Attrs>().dim, c.in(1).tensor()));
}

void ScatterAdd::infer(const Call& call, TensorImpl* const* outputs) {
  const int d = indexed_dim(call, call.attrs_as<Attrs>().dim);
  const Shape& index = index_shape(call);
  check_same_dtype(call, *call.operands[2]);
  check_fits(call, index, call.operands[0]->shape(), d, false);
  check_fits(call, index, call.operands[2]->shape(), d, true);
  set_type(call, outputs, call.operands[0]->shape());
}

namespace {

// The gradient of src: that of the elements it was written to; the part outside of the index got none.
Tensor gathered(RuleContext& c, int64_t dim) {
  const Tensor& index = c.in(1).tensor();
  Tensor g = gather(at(c.grad(), c.where()), dim, index);
  const Shape& want = c.type(2).shape;
  if (index.impl().shape() == want) return g;
  Tensor out = zeros_of_operand(c, 2);
  Geometry place;
  place.stride = dense_strides(want);
  place.size = index.impl().shape();
  return emit<AsStridedScatter>({out.get(), g.get()}, place, c.where());
}

}  // namespace

void ScatterAdd::vjp(RuleContext& c) {
  if (c.needs(0)) c.give(0, c.grad());
  if (c.needs(2)) c.give(2, gathered(c, c.attrs<Attrs>().dim));
}

void ScatterAdd::jvp(TangentContext& c) { put_jvp(c); }

void Scatter::infer(const Call& call, TensorImpl* const* outputs) {
  const int d = indexed_dim(call, call.attrs_as<Attrs>().dim);
  const Shape& index = index_shape(call);
  check_fits(call, index, call.operands[0]->shape(), d, false);
  if (call.operands[2]) {
    check_same_dtype(call, *call.operands[2]);
    check_fits(call, index, call.operands[2]->shape(), d, true);
  }
  set_type(call, outputs, call.operands[0]->shape());
}

void Scatter::vjp(RuleContext& c) {
  const int64_t d = c.attrs<Attrs>().dim;
  if (c.needs(0))
    c.give(0, scatter(at(c.grad(), c.where()), d, c.in(1).tensor(), Operand(Scalar(0), c.where())));
  if (c.has_operand(2) && c.needs(2)) c.give(2, gathered(c, d));
}

void Scatter::jvp(TangentContext& c) {
  if (c.has_operand(2)) return put_jvp(c);
  c.give(0, scatter(at(c.tangent(0), c.where()), c.attrs<Attrs>().dim, c.in(1).tensor(),
                    Operand(Scalar(0), c.where())));
}

// ---- index_select, index_add, index_copy ----------------------------------------------------------------------------

void IndexSelect::infer(const Call& call, TensorImpl* const* outputs) {
  const int d = indexed_dim(call, call.attrs_as<Attrs>().dim);
  const Shape& index = index_shape(call);
  if (index.rank() != 1) fail_call(call, Category::bad_dim, "the index has more than one dimension");
  Shape shape = call.operands[0]->shape();
  shape[d] = index[0];
  set_type(call, outputs, shape);
}

void IndexSelect::vjp(RuleContext& c) {
  const Tensor& index = c.in(1).tensor();
  c.give(0, emit<IndexSelectBackward>({c.grad().get(), index.get()}, {c.attrs<Attrs>().dim, c.type(0).shape},
                                      c.where()));
}

void IndexSelect::jvp(TangentContext& c) {
  c.give(0, index_select(at(c.tangent(0), c.where()), c.attrs<Attrs>().dim, c.in(1).tensor()));
}

void IndexSelectBackward::infer(const Call& call, TensorImpl* const* outputs) {
  const Attrs& a = call.attrs_as<Attrs>();
  const int d = indexed_dim(call, a.dim);
  const Shape& index = index_shape(call);
  if (index.rank() != 1) fail_call(call, Category::bad_dim, "the index has more than one dimension");
  check_sizes(call, a.size);
  Shape expected = a.size;
  expected[d] = index[0];
  if (!(expected == call.operands[0]->shape()))
    fail_call(call, Category::shape_mismatch, "gradient and index do not fit together");
  set_type(call, outputs, a.size);
}

void IndexSelectBackward::vjp(RuleContext& c) {
  c.give(0, index_select(at(c.grad(), c.where()), c.attrs<Attrs>().dim, c.in(1).tensor()));
}

void IndexSelectBackward::jvp(TangentContext& c) {
  c.give(0,
         emit<IndexSelectBackward>({c.tangent(0).get(), c.call().operands[1]}, c.attrs<Attrs>(), c.where()));
}

void IndexAdd::infer(const Call& call, TensorImpl* const* outputs) { infer_entries(call, outputs); }

void IndexAdd::vjp(RuleContext& c) {
  if (c.needs(0)) c.give(0, c.grad());
  if (c.needs(2)) c.give(2, index_select(at(c.grad(), c.where()), c.attrs<Attrs>().dim, c.in(1).tensor()));
}

void IndexAdd::jvp(TangentContext& c) { put_jvp(c); }

void IndexCopy::infer(const Call& call, TensorImpl* const* outputs) { infer_entries(call, outputs); }

void IndexCopy::vjp(RuleContext& c) {
  const int64_t d = c.attrs<Attrs>().dim;
  const Tensor& index = c.in(1).tensor();
  if (c.needs(0)) c.give(0, index_copy(at(c.grad(), c.where()), d, index, zeros_of_operand(c, 2)));
  if (c.needs(2)) c.give(2, index_select(at(c.grad(), c.where()), d, index));
}

void IndexCopy::jvp(TangentContext& c) { put_jvp(c); }

// ---- masked_fill ----------------------------------------------------------------------------------------------------

void MaskedFill::infer(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl &x = *call.operands[0], &mask = *call.operands[1];
  if (mask.dtype() != kBool) fail_call(call, Category::dtype_mismatch, "the mask is not bool");
  if (call.operands[2]) check_same_dtype(call, *call.operands[2]);
  if (!(mask.shape() == x.shape()) || (call.operands[2] && !(call.operands[2]->shape() == x.shape())))
    fail_call(call, Category::shape_mismatch, "operands have different shapes");
  set_type(call, outputs, x.shape());
}

namespace {

Tensor filled(const Tensor& x, const Tensor& mask, const Tensor& value, SourceLocation where) {
  return emit<MaskedFill>({x.get(), mask.get(), value.get()}, {Scalar(0)}, where);
}

}  // namespace

void MaskedFill::vjp(RuleContext& c) {
  const Tensor& mask = c.in(1).tensor();
  if (c.needs(0)) c.give(0, filled(c.grad(), mask, {}, c.where()));
  if (c.has_operand(2) && c.needs(2)) c.give(2, filled(zeros_of_operand(c, 2), mask, c.grad(), c.where()));
}

void MaskedFill::jvp(TangentContext& c) {
  const Tensor value = c.has_operand(2) ? c.tangent_or_zeros(2) : Tensor();
  c.give(0, filled(c.tangent_or_zeros(0), c.in(1).tensor(), value, c.where()));
}

// ---- batches of vmap ------------------------------------------------------------------------------------------------

namespace {

// An index of one dim for each sample, as the index of a gather or scatter of this shape, whose dim `dim` is the
// index's: repeated along the others.
Tensor spread_index(BatchContext& c, const Shape& shape, int64_t dim) {
  Shape column(IntArray(static_cast<size_t>(shape.rank()), 1));
  column[0] = c.size();
  column[static_cast<int>(dim)] = shape[static_cast<int>(dim)];
  return expand_to(at(reshape_to(at(c.value(1), c.where()), column), c.where()), shape);
}

// With one index for all samples: the op itself along the next dim.
template <class Attrs>
bool batch_by_one_index(BatchContext& c, Attrs attrs) {
  if (c.is_batched(1)) return false;
  ++attrs.dim;
  Tensors operands{c.all(0), c.value(1)};
  if (c.operands() > 2) operands.push_back(c.all(2));
  c.give(c.run(operands, &attrs));
  return true;
}

}  // namespace

void IndexSelect::batch(BatchContext& c) {
  if (batch_by_one_index(c, c.attrs<Attrs>())) return;
  const int64_t dim = c.attrs<Attrs>().dim + 1;
  c.give(0, gather(at(c.all(0), c.where()), dim, spread_index(c, c.with_batch(c.out_type().shape), dim)));
}

void IndexSelectBackward::batch(BatchContext& c) {
  Attrs attrs = c.attrs<Attrs>();
  attrs.size.insert(0, c.size());
  if (batch_by_one_index(c, attrs)) return;
  const Tensor zeros = zeros_of({c.out_type().dtype, c.out_type().device, attrs.size}, c.where());
  const Tensor index = spread_index(c, c.with_batch(c.shape(0)), attrs.dim + 1);
  c.give(0, scatter_add(at(zeros, c.where()), attrs.dim + 1, index, c.all(0)));
}

void IndexAdd::batch(BatchContext& c) {
  if (batch_by_one_index(c, c.attrs<Attrs>())) return;
  const int64_t dim = c.attrs<Attrs>().dim + 1;
  c.give(0,
         scatter_add(at(c.all(0), c.where()), dim, spread_index(c, c.with_batch(c.shape(2)), dim), c.all(2)));
}

void IndexCopy::batch(BatchContext& c) {
  if (batch_by_one_index(c, c.attrs<Attrs>())) return;
  const int64_t dim = c.attrs<Attrs>().dim + 1;
  c.give(0, scatter(at(c.all(0), c.where()), dim, spread_index(c, c.with_batch(c.shape(2)), dim),
                    at(c.all(2), c.where())));
}

}  // namespace ops

// ---- public functions -----------------------------------------------------------------------------------------------

using ops::lift, ops::lower, ops::Lifted;

Tensor gather(Operand x, int64_t dim, const Tensor& index) {
  const NamedCall call("gather", x.where());
  const Tensor i = ops::as_index(index, "gather", x.where());
  const Lifted from(x, dim, "gather");
  const Tensor lifted = lift(i, x.where());
  return lower(ops::emit<ops::Gather>({from.get(), lifted.get()}, {from.dim}, x.where()), i.impl().shape(),
               x.where());
}

Tensor scatter(Operand x, int64_t dim, const Tensor& index, Operand src) {
  const NamedCall call("scatter", x.where());
  const Tensor i = lift(ops::as_index(index, "scatter", x.where()), x.where());
  const Lifted into(x, dim, "scatter");
  Tensor from;
  if (!src.is_scalar()) from = lift(src.tensor(), x.where());
  const ops::Scatter::Attrs attrs{into.dim, src.is_scalar() ? src.scalar() : Scalar(0)};
  return lower(ops::emit<ops::Scatter>({into.get(), i.get(), from.get()}, attrs, x.where()), shape_of(x),
               x.where());
}

Tensor scatter_add(Operand x, int64_t dim, const Tensor& index, const Tensor& src) {
  const NamedCall call("scatter_add", x.where());
  const Tensor i = lift(ops::as_index(index, "scatter_add", x.where()), x.where()),
               from = lift(src, x.where());
  const Lifted into(x, dim, "scatter_add");
  return lower(ops::emit<ops::ScatterAdd>({into.get(), i.get(), from.get()}, {into.dim}, x.where()),
               shape_of(x), x.where());
}

Tensor index_select(Operand x, int64_t dim, const Tensor& index) {
  const NamedCall call("index_select", x.where());
  const Tensor i = lift(ops::as_index(index, "index_select", x.where()), x.where());
  const Lifted from(x, dim, "index_select");
  const Tensor out = ops::emit<ops::IndexSelect>({from.get(), i.get()}, {from.dim}, x.where());
  return shape_of(x).rank() ? out : lower(out, {}, x.where());
}

Tensor index_add(Operand x, int64_t dim, const Tensor& index, const Tensor& source, Scalar alpha) {
  const NamedCall call("index_add", x.where());
  const Tensor i = lift(ops::as_index(index, "index_add", x.where()), x.where());
  const Lifted into(x, dim, "index_add");
  Tensor from = lift(source, x.where());
  if (!is_floating(source.dtype())) alpha = Scalar(alpha.to_int());
  if (alpha.is_symbolic() || alpha.to_double() != 1) from = mul(Operand(from, x.where()), alpha);
  return lower(ops::emit<ops::IndexAdd>({into.get(), i.get(), from.get()}, {into.dim}, x.where()),
               shape_of(x), x.where());
}

Tensor index_copy(Operand x, int64_t dim, const Tensor& index, const Tensor& source) {
  const NamedCall call("index_copy", x.where());
  const Tensor i = lift(ops::as_index(index, "index_copy", x.where()), x.where()),
               from = lift(source, x.where());
  const Lifted into(x, dim, "index_copy");
  return lower(ops::emit<ops::IndexCopy>({into.get(), i.get(), from.get()}, {into.dim}, x.where()),
               shape_of(x), x.where());
}

Tensor masked_fill(Operand x, const Tensor& mask, Operand value) {
  const NamedCall call("masked_fill", x.where());
  if (mask.dtype() != kBool)
    fail(Category::dtype_mismatch, "masked_fill",
         fmt::format("a mask must be bool, this is {}", describe(mask)), x.where());
  const Shape shape = broadcast_shapes(shape_of(x), mask.impl().shape(), "masked_fill");
  const Tensor from = expand_to(x, shape), where_to = expand_to(Operand(mask, x.where()), shape);
  Tensor v;
  if (!value.is_scalar()) {
    if (shape_of(value).rank() != 0)
      fail(Category::bad_dim, "masked_fill",
           fmt::format("the value is {}, not a number", describe(value.tensor())), x.where());
    const Tensor cast = to(Operand(value.tensor(), x.where()), from.dtype());
    v = expand_to(Operand(to(Operand(cast, x.where()), from.device()), x.where()), shape);
  }
  const ops::MaskedFill::Attrs attrs{value.is_scalar() ? value.scalar() : Scalar(0)};
  return ops::emit<ops::MaskedFill>({from.get(), where_to.get(), v.get()}, attrs, x.where());
}

}  // namespace retrograd
