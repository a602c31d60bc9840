// See ops/view_scatter.h.
#include "ops/view_scatter.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/named_call.h"
#include "ops/creation.h"
#include "ops/family_parts.h"

namespace retrograd::inline v0 {
namespace ops {

template <class V, class Op>
void ViewScatter<V, Op>::infer(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl &base = *call.operands[0], &value = *call.operands[1];
  const RefPtr<TensorImpl> seen = TensorImpl::make();
  TensorImpl* cell = seen.get();
  V::infer({call.op, call.operands.subspan(0, 1), call.attrs, call.where, 1}, &cell);
  if (value.dtype() != base.dtype()) fail_call(call, Category::dtype_mismatch, "the value has another dtype");
  if (!(value.shape() == seen->shape()))
    fail_call(call, Category::shape_mismatch,
              fmt::format("the value should have shape {}", to_string(seen->shape())));
  set_like(base, base.shape(), *outputs[0]);
}

template <class V, class Op>
Tensor ViewScatter<V, Op>::transpose(RuleContext& c, int i, const Tensor& g) {
  const Attrs& a = c.attrs<Attrs>();
  if (i == 1) return V::of(g, a, c.where());
  const Tensor zero = repeated_zero(c.type(1), c.where());
  return emit<Op>({g.get(), zero.get()}, a, c.where());
}

template struct ViewScatter<Slice, SliceScatter>;
template struct ViewScatter<Select, SelectScatter>;
template struct ViewScatter<Diagonal, DiagonalScatter>;

}  // namespace ops

namespace {

// Emits Op on x and on src in x's dtype.
template <class Op>
Tensor replaced(Operand x, const Tensor& src, const typename Op::Attrs& attrs) {
  const Tensor value = to(Operand(src, x.where()), x.tensor().dtype());
  return ops::emit<Op>({x.tensor().get(), value.get()}, attrs, x.where());
}

// As in writes in place, only strides of 0 are recognised.
bool repeats(const ops::Geometry& g) {
  for (int i = 0; i < std::min(g.size.rank(), g.stride.rank()); ++i)
    if (g.stride[i].raw() == 0 && g.size[i] > 1) return g.size.numel().raw() != 0;
  return false;
}

}  // namespace

Tensor slice_scatter(Operand x, const Tensor& src, int64_t dim, std::optional<int64_t> start,
                     std::optional<int64_t> end, int64_t step) {
  const NamedCall call("slice_scatter", x.where());
  return replaced<ops::SliceScatter>(x, src, ops::slice_attrs(x, dim, start, end, step, "slice_scatter"));
}

Tensor select_scatter(Operand x, const Tensor& src, int64_t dim, Dim index) {
  const NamedCall call("select_scatter", x.where());
  return replaced<ops::SelectScatter>(x, src, ops::select_attrs(x, dim, index, "select_scatter"));
}

Tensor diagonal_scatter(Operand x, const Tensor& src, int64_t offset, int64_t dim1, int64_t dim2) {
  const NamedCall call("diagonal_scatter", x.where());
  return replaced<ops::DiagonalScatter>(x, src,
                                        ops::diagonal_attrs(x, offset, dim1, dim2, "diagonal_scatter"));
}

Tensor as_strided_scatter(Operand x, const Tensor& src, const IntArray& size, const IntArray& stride,
                          std::optional<int64_t> storage_offset) {
  const NamedCall call("as_strided_scatter", x.where());
  const ops::Strided s = ops::strided(x, size, stride, storage_offset, "as_strided_scatter");
  if (repeats(s.geometry))
    fail(Category::overlapping_write, "as_strided_scatter", "the view shows one element more than once",
         x.where());
  return replaced<ops::AsStridedScatter>(Operand(s.base, x.where()), src, s.geometry);
}

Tensor diag_embed(Operand x, int64_t offset, int64_t dim1, int64_t dim2) {
  const NamedCall call("diag_embed", x.where());
  Shape shape = shape_of(x);
  const int rank = shape.rank() + 1, a = wrap_dim(dim1, rank, "diag_embed"),
            b = wrap_dim(dim2, rank, "diag_embed");
  if (shape.rank() == 0 || a == b)
    fail(Category::bad_dim, "diag_embed", shape.rank() ? "the two dims are the same" : "a number has no dim",
         x.where());
  const Dim n = offset < 0 ? shape.back() - Dim(offset) : shape.back() + Dim(offset);
  shape.erase(shape.rank() - 1);
  shape.insert(std::min(a, b), n);
  shape.insert(std::max(a, b), n);
  return ops::emit<ops::Transposed<ops::Diagonal>>({x.tensor().get()}, {{offset, a, b}, shape}, x.where());
}

Tensor diagflat(Operand x, int64_t offset) {
  const NamedCall call("diagflat", x.where());
  return diag_embed(Operand(flat(x.tensor(), x.where()), x.where()), offset);
}

}  // namespace retrograd
