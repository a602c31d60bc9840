// Type rules, layouts and rules of ops/views.h.
#include "ops/views.h"

#include <algorithm>

#include <fmt/format.h>

#include "ops/arithmetic.h"
#include "ops/attributes.h"
#include "ops/batching.h"
#include "ops/creation.h"
#include "ops/family_parts.h"

namespace retrograd::inline v0 {
namespace ops {
namespace {

void set_shape(const Call& call, TensorImpl* const* outputs, const Shape& shape) {
  const TensorImpl& x = *call.operands[0];
  check_extent(shape);
  outputs[0]->set_type(x.dtype(), x.device(), shape);
}

// The largest stride: sums and multiples of such strides do not overflow.
constexpr int64_t kLargestStride = int64_t{1} << 48;

// The stride of a dim that shows `entries` in steps. For a single entry the stride does not matter, so it is kept
// rather than multiplied.
Dim in_steps(Dim stride, Dim step, Dim entries) {
  if (stride.is_symbolic() || step.is_symbolic()) return stride * step;
  int64_t wide;
  const bool overflows = __builtin_mul_overflow(stride.raw(), step.raw(), &wide) || wide > kLargestStride;
  return overflows && (entries.raw() == 0 || entries.raw() == 1) ? stride : Dim(wide);
}

// A number has no dim to pick from.
int picked_dim(const Call& call, int64_t dim) { return checked_dim(call, dim, call.operands[0]->rank()); }

}  // namespace

template <class V>
Tensor PickingView<V>::transpose(RuleContext& c, int, const Tensor& g) {
  return emit<Transposed<V>>({g.get()}, {c.attrs<typename V::Attrs>(), c.type(0).shape}, c.where());
}

// The shape that V gives for `size` must be the operand's shape.
template <class V>
void Transposed<V>::infer(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl& g = *call.operands[0];
  Attrs& attrs = call.attrs_as<Attrs>();
  check_sizes(call, attrs.size);
  outputs[0]->set_type(g.dtype(), g.device(), attrs.size);
  RefPtr<TensorImpl> seen = TensorImpl::make();
  TensorImpl* cell = seen.get();
  V::infer({&info<V>, {outputs, 1}, &attrs.view, call.where, 1}, &cell);
  if (!(seen->shape() == g.shape()))
    fail_call(call, Category::shape_mismatch,
              fmt::format("{} is expected from a {} of {}", to_string(seen->shape()), V::name,
                          to_string(attrs.size)));
  if constexpr (std::is_same_v<V, AsStrided>) {
    if (!attrs.view.base_is_dense)
      fail_call(call, Category::bad_argument, "the zeros that it is put into are row-major");
    check_inside(call, attrs.view, attrs.size);
  }
}

template struct Transposed<Slice>;
template struct Transposed<Select>;
template struct Transposed<Diagonal>;
template struct Transposed<Unfold>;
template struct Transposed<AsStrided>;
template struct PickingView<Slice>;
template struct PickingView<Select>;
template struct PickingView<Diagonal>;
template struct PickingView<Unfold>;

// ---- slice, select, diagonal, unfold --------------------------------------------------------------------------------

void Slice::infer(const Call& call, TensorImpl* const* outputs) {
  const Attrs& a = call.attrs_as<Attrs>();
  const int d = picked_dim(call, a.dim);
  Shape shape = call.operands[0]->shape();
  if (a.length < 0 || a.step < 1)
    fail_call(call, Category::bad_argument, "the length is negative or the step is not positive");
  const Dim stop = a.step.raw() == 1     ? a.start + a.length
                   : a.length.raw() == 0 ? a.start
                                         : a.start + (a.length - 1) * a.step + 1;
  if (a.start < 0 || stop > shape[d])
    fail_call(call, Category::index_out_of_range,
              fmt::format("{} entries from {} in steps of {} are not within dim {}", to_string(a.length),
                          to_string(a.start), to_string(a.step), d));
  shape[d] = a.length;
  set_shape(call, outputs, shape);
}

void Slice::layout(const Call& call, TensorImpl& output) {
  const Attrs& a = call.attrs_as<Attrs>();
  const TensorImpl& x = *call.operands[0];
  std::copy_n(x.strides(), x.rank(), output.mutable_strides());
  const int d = static_cast<int>(a.dim);
  output.set_stride(d, in_steps(x.stride(d), a.step, a.length));
  output.set_offset(x.offset() + a.start * x.stride(d));
}

void Select::infer(const Call& call, TensorImpl* const* outputs) {
  const Attrs& a = call.attrs_as<Attrs>();
  const int d = picked_dim(call, a.dim);
  Shape shape = call.operands[0]->shape();
  if (a.index < 0 || a.index >= shape[d])
    fail_call(call, Category::index_out_of_range,
              fmt::format("index {} is out of range in dim {}", to_string(a.index), d));
  shape.erase(d);
  set_shape(call, outputs, shape);
}

void Select::layout(const Call& call, TensorImpl& output) {
  const Attrs& a = call.attrs_as<Attrs>();
  const TensorImpl& x = *call.operands[0];
  for (int i = 0; i < output.rank(); ++i) output.mutable_strides()[i] = x.strides()[i < a.dim ? i : i + 1];
  output.set_offset(x.offset() + a.index * x.stride(static_cast<int>(a.dim)));
}

void Diagonal::infer(const Call& call, TensorImpl* const* outputs) {
  const Attrs& a = call.attrs_as<Attrs>();
  const int dim1 = picked_dim(call, a.dim1), dim2 = picked_dim(call, a.dim2);
  if (dim1 == dim2) fail_call(call, Category::bad_dim, "the two dims are the same");
  Shape shape = call.operands[0]->shape();
  const Dim rows = shape[dim1], columns = shape[dim2];
  const int64_t offset = std::clamp(a.offset, -kFarthest, kFarthest);
  const Dim by_rows = offset < 0 ? rows + offset : rows, by_columns = offset > 0 ? columns - offset : columns;
  Dim length = by_rows < by_columns ? by_rows : by_columns;
  if (length < 0) length = 0;
  shape.erase(std::max(dim1, dim2));
  shape.erase(std::min(dim1, dim2));
  shape.push_back(length);
  set_shape(call, outputs, shape);
}

void Diagonal::layout(const Call& call, TensorImpl& output) {
  const Attrs& a = call.attrs_as<Attrs>();
  const TensorImpl& x = *call.operands[0];
  int at = 0;
  for (int i = 0; i < x.rank(); ++i)
    if (i != a.dim1 && i != a.dim2) output.mutable_strides()[at++] = x.strides()[i];
  const Dim first = x.stride(static_cast<int>(a.dim1)), second = x.stride(static_cast<int>(a.dim2));
  int64_t sum;
  if (first.is_symbolic() || second.is_symbolic())
    output.set_stride(at, first + second);
  else
    output.set_stride(
        at, __builtin_add_overflow(first.raw(), second.raw(), &sum) ? 1 : sum);  // of at most one entry
  if (output.shape().back().raw() == 0) return output.set_offset(x.offset());
  output.set_offset(x.offset() + (a.offset >= 0 ? second * a.offset : first * -a.offset));
}

void Unfold::infer(const Call& call, TensorImpl* const* outputs) {
  const Attrs& a = call.attrs_as<Attrs>();
  const int d = picked_dim(call, a.dim);
  Shape shape = call.operands[0]->shape();
  if (a.step < 1) fail_call(call, Category::bad_argument, "the step is not positive");
  if (a.size < 0 || a.size > shape[d])
    fail_call(call, Category::bad_argument,
              fmt::format("windows of {} do not fit into dim {}", to_string(a.size), d));
  shape[d] = (shape[d] - a.size) / a.step + 1;
  shape.push_back(a.size);
  set_shape(call, outputs, shape);
}

void Unfold::layout(const Call& call, TensorImpl& output) {
  const Attrs& a = call.attrs_as<Attrs>();
  const TensorImpl& x = *call.operands[0];
  std::copy_n(x.strides(), x.rank(), output.mutable_strides());
  const int d = static_cast<int>(a.dim);
  output.set_stride(x.rank(), x.stride(d));
  output.set_stride(d, in_steps(x.stride(d), a.step, output.shape()[d]));
  output.set_storage_offset(x.storage_offset());
}

// ---- as_strided -----------------------------------------------------------------------------------------------------

namespace {

// The number of elements from the first to the last of a tensor with these strides.
Dim extent(const Shape& size, const Shape& stride) {
  Dim n = 1;
  for (int i = 0; i < size.rank(); ++i) {
    if (size[i].raw() == 0) return 0;
    if (stride[i].raw() != 0) n += (size[i] - 1) * stride[i];
  }
  return n;
}

bool repeats(const Shape& size, const Shape& stride) {
  for (int i = 0; i < size.rank(); ++i)
    if (stride[i].raw() == 0 && size[i].raw() != 1) return true;
  return false;
}

// The flat memory that contains a base and a view of it: `size` elements; the base begins at `base_offset`.
class Buffer {
 public:
  Buffer(const Geometry& g, const TensorType& base, SourceLocation where) : type_(base), where_(where) {
    const Dim base_extent = g.base_is_dense ? base.shape.numel() : extent(base.shape, g.base_stride);
    const Dim view_end = extent(g.size, g.stride) + g.offset;
    low_ = std::min<Dim>(g.offset, 0);
    is_base_ = g.base_is_dense && g.offset >= 0 && (g.size.numel().raw() == 0 || view_end <= base_extent);
    size_ = is_base_ ? base_extent : (base_extent > view_end ? base_extent : view_end) - low_;
    base_ = Geometry{base.shape, g.base_stride, Dim(0) - low_, {}, true};
    if (g.base_is_dense) base_.stride = dense_strides(base.shape);
    view_ = Geometry{g.size, g.stride, g.offset - low_, {}, true};
    repeats_ = !g.base_is_dense && repeats(base.shape, g.base_stride);
  }

  /// x, of the base's shape, laid out in the buffer. Elements that the base repeats are averaged.
  Tensor from_base(const Tensor& x) const {
    if (is_base_) return reshape_to(Operand(contiguous(Operand(x, where_)), where_), {size_});
    return averaged(emit<Transposed<AsStrided>>({x.get()}, {base_, {size_}}, where_));
  }
  Tensor to_base(const Tensor& buffer) const {
    if (is_base_) return reshape_to(Operand(buffer, where_), type_.shape);
    return AsStrided::of(buffer, base_, where_);
  }
  Tensor from_view(const Tensor& g) const {
    return emit<Transposed<AsStrided>>({g.get()}, {view_, {size_}}, where_);
  }
  Tensor to_view(const Tensor& buffer) const { return AsStrided::of(buffer, view_, where_); }
  Tensor with_view(const Tensor& buffer, const Tensor& value) const {
    return emit<AsStridedScatter>({buffer.get(), value.get()}, view_, where_);
  }
  /// Divided by how often the base shows each element (PyTorch: as_strided_backward).
  Tensor averaged(const Tensor& buffer) const {
    if (!repeats_) return buffer;
    const Tensor one = ones_of(type_, where_);
    const Tensor count = emit<Transposed<AsStrided>>({one.get()}, {base_, {size_}}, where_);
    const Tensor all = full({size_}, 1, {type_.dtype, type_.device}, where_),
                 seen = AsStrided::of(count, base_, where_);
    return div(Operand(buffer, where_), emit<AsStridedScatter>({all.get(), seen.get()}, base_, where_));
  }

 private:
  TensorType type_;
  SourceLocation where_;
  Dim size_, low_;
  Geometry base_, view_;
  bool is_base_, repeats_;
};

void check_strides(const Call& call, const Shape& size, const Shape& stride) {
  if (size.rank() != stride.rank())
    fail_call(call, Category::bad_argument, "sizes and strides are not equally many");
  for (const Dim s : stride) {
    if (s.is_symbolic()) continue;
    if (s < 0) fail_call(call, Category::bad_argument, "a stride is negative");
    if (s > kLargestStride) fail_call(call, Category::bad_argument, "a stride is above 2^48");
  }
}

void check_geometry(const Call& call, const Geometry& g, const Shape& base) {
  check_sizes(call, g.size);
  check_strides(call, g.size, g.stride);
  if (!g.base_is_dense) check_strides(call, base, g.base_stride);
  if (!g.offset.is_symbolic() && (g.offset < -kLargestStride || g.offset > kLargestStride))
    fail_call(call, Category::index_out_of_range,
              fmt::format("the offset {} is above 2^48", to_string(g.offset)));
}

Shape at_capture(const Shape& shape) { return shape.is_symbolic() ? Shape(shape.hints()) : shape; }

}  // namespace

void check_inside(const Call& call, const Geometry& g, const Shape& base) {
  const Shape whole = at_capture(base);
  const int64_t shown = extent(at_capture(g.size), at_capture(g.stride)).raw(), offset = g.offset.hint(),
                there =
                    g.base_is_dense ? whole.numel().raw() : extent(whole, at_capture(g.base_stride)).raw();
  if (shown > 0 && (offset < 0 || offset > there || shown > there - offset))
    fail_call(call, Category::index_out_of_range,
              fmt::format("elements {} to {} are not within the {} of the base", offset, offset + shown - 1,
                          there));
}

void AsStrided::infer(const Call& call, TensorImpl* const* outputs) {
  const Geometry& g = call.attrs_as<Geometry>();
  check_geometry(call, g, call.operands[0]->shape());
  set_shape(call, outputs, g.size);
}

void AsStrided::layout(const Call& call, TensorImpl& output) {
  const Geometry& g = call.attrs_as<Geometry>();
  const TensorImpl& x = *call.operands[0];
  RG_ASSERT(!g.base_is_dense || x.is_contiguous());
  const Dim first = x.offset() + g.offset;
  const int64_t begin = first.hint(), end = (first + extent(g.size, g.stride)).hint();
  const int64_t capacity = x.storage()->nbytes() / static_cast<int64_t>(element_size(x.dtype()));
  if (begin < 0 || begin > kLargestStride || (g.size.numel().raw() != 0 && end > capacity))
    fail_call(call, Category::index_out_of_range,
              fmt::format("elements {} to {} of a storage of {} are out of range", begin, end - 1, capacity));
  if (x.shape().is_symbolic() || g.size.is_symbolic() || g.stride.is_symbolic() || g.offset.is_symbolic()) {
    // A guard: at other sizes the view may leave its operand. One that does so now fixes the sizes.
    const Dim there = g.base_is_dense ? x.shape().numel() : extent(x.shape(), g.base_stride);
    if (g.size.numel().raw() != 0 && !(g.offset + extent(g.size, g.stride) <= there && g.offset >= 0))
      static_cast<void>(there.value());
  }
  for (int i = 0; i < g.size.rank(); ++i) output.set_stride(i, g.stride[i]);
  output.set_offset(first);
}

Tensor AsStrided::of(const Tensor& x, const Geometry& geometry, SourceLocation where) {
  const Tensor dense = contiguous(Operand(x, where));
  return emit<AsStrided>({dense.get()}, geometry, where);
}

void AsStrided::vjp(RuleContext& c) {
  const Buffer buffer(c.attrs<Geometry>(), c.type(0), c.where());
  c.give(0, buffer.to_base(buffer.averaged(buffer.from_view(c.grad()))));
}

void AsStrided::jvp(TangentContext& c) {
  const Buffer buffer(c.attrs<Geometry>(), c.type(0), c.where());
  c.give(0, buffer.to_view(buffer.from_base(c.tangent(0))));
}

void AsStridedScatter::infer(const Call& call, TensorImpl* const* outputs) {
  const Geometry& g = call.attrs_as<Geometry>();
  const TensorImpl &base = *call.operands[0], &value = *call.operands[1];
  check_geometry(call, g, base.shape());
  if (!(value.shape() == g.size))
    fail_call(call, Category::shape_mismatch, "the value has another shape than the view");
  if (value.dtype() != base.dtype()) fail_call(call, Category::dtype_mismatch, "the value has another dtype");
  check_inside(call, g, base.shape());
  set_shape(call, outputs, base.shape());
}

void AsStridedScatter::vjp(RuleContext& c) {
  const Buffer buffer(c.attrs<Geometry>(), c.type(0), c.where());
  const Tensor g = buffer.from_base(c.grad());
  if (c.needs(0)) c.give(0, buffer.to_base(buffer.with_view(g, zeros_of(c.type(1), c.where()))));
  if (c.needs(1)) c.give(1, buffer.to_view(g));
}

void AsStridedScatter::jvp(TangentContext& c) {
  const Buffer buffer(c.attrs<Geometry>(), c.type(0), c.where());
  c.give(0, buffer.to_base(buffer.with_view(buffer.from_base(c.tangent_or_zeros(0)), c.tangent_or_zeros(1))));
}

// ---- batches of vmap ------------------------------------------------------------------------------------------------

namespace {

// The geometry of all samples, whose bases lie `apart` elements apart.
Geometry of_samples(const BatchContext& c, const Geometry& one, Dim apart, Shape base_stride, bool is_dense) {
  Geometry all = one;
  all.size.insert(0, c.size());
  all.stride.insert(0, apart);
  all.base_stride = std::move(base_stride);
  all.base_is_dense = is_dense;
  return all;
}

// The extent of a base of this shape in its layout.
Dim extent_of_base(const Geometry& g, const Shape& base) {
  return g.base_is_dense ? base.numel() : extent(base, g.base_stride);
}

}  // namespace

void AsStrided::batch(BatchContext& c) {
  Tensor x = c.value(0);
  if (!x.impl().has_layout()) x = contiguous(Operand(x, c.where()));
  const bool is_known = x.impl().has_layout();
  Shape strides;
  for (int i = 0; is_known && i < x.impl().rank(); ++i) strides.push_back(x.impl().stride(i));
  const Dim apart = is_known ? x.impl().stride(0) : c.shape(0).numel();
  Geometry all = of_samples(c, c.attrs<Geometry>(), apart, strides, !is_known || x.is_contiguous());
  c.give(c.run({&x, 1}, &all));
}

void AsStrided::batch_transposed(BatchContext& c) {
  auto attrs = c.attrs<Transposed<AsStrided>::Attrs>();
  const Dim buffer = attrs.size.numel();
  attrs.view = of_samples(c, attrs.view, buffer, {}, true);
  attrs.size = {c.size() * buffer};
  const Tensor g = c.value(0);
  c.give(0, unfold_first(c.run({&g, 1}, &attrs)[0], c.size(), buffer, c.where()));
}

void AsStridedScatter::batch(BatchContext& c) {
  const Geometry& one = c.attrs<Geometry>();
  const Dim apart = extent_of_base(one, c.shape(0));
  Shape strides = one.base_stride;
  if (!strides.empty() || c.rank(0) == 0) strides.insert(0, apart);
  Geometry all = of_samples(c, one, apart, strides, one.base_is_dense);
  const Tensor operands[] = {c.all(0), c.all(1)};
  c.give(c.run(operands, &all));
}

}  // namespace ops

}  // namespace retrograd
