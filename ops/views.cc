// Type rules, layouts and rules of ops/views.h, and its public functions.
#include "ops/views.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "engine/named_call.h"
#include "ops/arithmetic.h"
#include "ops/attributes.h"
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

// Offsets of diagonals and bounds of slices beyond it are clamped to it: it fits into a Dim, also after a size is added
// or subtracted.
constexpr int64_t kFarthest = INT64_MAX - (int64_t{1} << 32);

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

}  // namespace ops

// ---- public functions -----------------------------------------------------------------------------------------------

namespace {

int dim_of(Operand x, int64_t dim, std::string_view op) {
  const int rank = shape_of(x).rank();
  if (rank == 0) fail(Category::bad_dim, op, "a tensor without dimensions has no entries", x.where());
  return wrap_dim(dim, rank, op);
}

Tensor slice_of(Operand x, int dim, Dim start, Dim length, Dim step) {
  return ops::emit<ops::Slice>({x.tensor().get()}, {dim, start, length, step}, x.where());
}

}  // namespace

Tensor narrow(Operand x, int64_t dim, Dim start, Dim length) {
  const NamedCall call("narrow", x.where());
  const int d = dim_of(x, dim, "narrow");
  if (length < 0)
    fail(Category::bad_argument, "narrow", fmt::format("the length {} is negative", to_string(length)),
         x.where());
  return slice_of(x, d, start < 0 ? start + shape_of(x)[d] : start, length, 1);
}

namespace ops {

SliceAttrs slice_attrs(Operand x, int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end,
                       int64_t step, std::string_view op) {
  const int d = dim_of(x, dim, op);
  if (step < 1) fail(Category::bad_argument, op, fmt::format("the step {} is not positive", step), x.where());
  const Dim n = shape_of(x)[d];
  auto clamped = [&](int64_t given) {
    Dim at = std::max(given, -ops::kFarthest);
    if (at < 0) at = at + n;
    return at < 0 ? Dim(0) : at > n ? n : at;
  };
  const Dim from = start ? clamped(*start) : Dim(0), to = end ? clamped(*end) : n;
  const Dim length = to > from ? (step == 1 ? to - from : (to - from - 1) / step + 1) : Dim(0);
  return {d, from, length, step};
}

SelectAttrs select_attrs(Operand x, int64_t dim, Dim index, std::string_view op) {
  const int d = dim_of(x, dim, op);
  return {d, index < 0 ? index + shape_of(x)[d] : index};
}

DiagonalAttrs diagonal_attrs(Operand x, int64_t offset, int64_t dim1, int64_t dim2, std::string_view op) {
  const int a = dim_of(x, dim1, op), b = dim_of(x, dim2, op);
  return {offset, a, b};
}

Strided strided(Operand x, const IntArray& size, const IntArray& stride,
                std::optional<int64_t> storage_offset, std::string_view op) {
  const TensorImpl& from = x.tensor().impl();
  if (storage_offset && *storage_offset < 0)
    fail(Category::bad_argument, op, fmt::format("the offset {} is negative", *storage_offset), x.where());
  Strided s{from.has_layout() ? x.tensor() : clone(x), {}};
  s.geometry.size = Shape(size);
  s.geometry.stride = Shape(stride);
  if (!from.has_layout())
    s.geometry.offset = storage_offset.value_or(0);
  else {
    // Both are not negative.
    s.geometry.offset = (storage_offset ? Dim(*storage_offset) : from.offset()) - from.offset();
    for (int i = 0; i < from.rank(); ++i) s.geometry.base_stride.push_back(from.stride(i));
    s.geometry.base_is_dense = from.is_contiguous();
  }
  return s;
}

}  // namespace ops

Tensor select(Operand x, int64_t dim, Dim index) {
  const NamedCall call("select", x.where());
  return ops::emit<ops::Select>({x.tensor().get()}, ops::select_attrs(x, dim, index, "select"), x.where());
}

Tensor slice(Operand x, int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end, int64_t step) {
  const NamedCall call("slice", x.where());
  return ops::emit<ops::Slice>({x.tensor().get()}, ops::slice_attrs(x, dim, start, end, step, "slice"),
                               x.where());
}

Tensor squeeze(Operand x) {
  const NamedCall call("squeeze", x.where());
  Shape shape;
  for (Dim d : shape_of(x))
    if (!(d == 1)) shape.push_back(d);
  return reshape_to(x, shape);
}

Tensor squeeze(Operand x, int64_t dim) { return squeeze(x, IntArray{dim}); }

Tensor squeeze(Operand x, const IntArray& dims) {
  const NamedCall call("squeeze", x.where());
  const Shape& from = shape_of(x);
  uint64_t drop = 0;
  for (int64_t dim : dims) {
    const int d = wrap_dim(dim, from.rank(), "squeeze");
    if (drop >> d & 1) fail(Category::bad_dim, "squeeze", fmt::format("dim {} is given twice", d), x.where());
    drop |= uint64_t{1} << d;
  }
  Shape shape;
  for (int i = 0; i < from.rank(); ++i)
    if (!(drop >> i & 1 && from[i] == 1)) shape.push_back(from[i]);
  return reshape_to(x, shape);
}

Tensor unsqueeze(Operand x, int64_t dim) {
  const NamedCall call("unsqueeze", x.where());
  Shape shape = shape_of(x);
  shape.insert(wrap_dim(dim, shape.rank() + 1, "unsqueeze"), 1);
  return reshape_to(x, shape);
}

Tensor flatten(Operand x, int64_t start_dim, int64_t end_dim) {
  const NamedCall call("flatten", x.where());
  const Shape& from = shape_of(x);
  if (from.rank() == 0) return reshape_to(x, {1});
  const int first = wrap_dim(start_dim, from.rank(), "flatten"),
            last = wrap_dim(end_dim, from.rank(), "flatten");
  if (first > last) fail(Category::bad_dim, "flatten", "start_dim is after end_dim", x.where());
  if (first == last) return x.tensor();
  Shape shape;
  for (int i = 0; i < from.rank(); ++i) {
    if (i <= first || i > last)
      shape.push_back(from[i]);
    else
      shape[first] *= from[i];
  }
  return reshape_to(x, shape);
}

Tensor broadcast_to(Operand x, const Shape& size) {
  const NamedCall call("broadcast_to", x.where());
  return expand(x, size);
}

Tensor movedim(Operand x, const IntArray& source, const IntArray& destination) {
  const NamedCall call("movedim", x.where());
  const int rank = shape_of(x).rank();
  if (source.size() != destination.size())
    fail(Category::bad_argument, "movedim",
         fmt::format("{} sources, {} destinations", source.size(), destination.size()), x.where());
  IntArray order(static_cast<size_t>(rank), -1);
  uint64_t moved = 0;
  for (size_t i = 0; i < source.size(); ++i) {
    const int from = wrap_dim(source[i], rank, "movedim"), to = wrap_dim(destination[i], rank, "movedim");
    if (rank == 0) continue;
    if (moved >> from & 1 || order[static_cast<size_t>(to)] >= 0)
      fail(Category::bad_dim, "movedim", "a dim is given twice", x.where());
    moved |= uint64_t{1} << from;
    order[static_cast<size_t>(to)] = from;
  }
  int next = 0;
  for (int64_t& from : order) {
    if (from >= 0) continue;
    while (moved >> next & 1) ++next;
    from = next++;
  }
  return permute(x, order);
}

Tensor diagonal(Operand x, int64_t offset, int64_t dim1, int64_t dim2) {
  const NamedCall call("diagonal", x.where());
  return ops::emit<ops::Diagonal>({x.tensor().get()}, ops::diagonal_attrs(x, offset, dim1, dim2, "diagonal"),
                                  x.where());
}

Tensor unfold(Operand x, int64_t dimension, int64_t size, int64_t step) {
  const NamedCall call("unfold", x.where());
  const int d = wrap_dim(dimension, shape_of(x).rank(), "unfold");
  const ops::UnfoldAttrs attrs{d, size, step};
  if (shape_of(x).rank() > 0) return ops::emit<ops::Unfold>({x.tensor().get()}, attrs, x.where());
  const Tensor one = reshape_to(x, {1});  // a window of a number: one window
  return select(Operand(ops::emit<ops::Unfold>({one.get()}, attrs, x.where()), x.where()), 0, 0);
}

Tensor as_strided(Operand x, const IntArray& size, const IntArray& stride,
                  std::optional<int64_t> storage_offset) {
  const NamedCall call("as_strided", x.where());
  const ops::Strided s = ops::strided(x, size, stride, storage_offset, "as_strided");
  return ops::emit<ops::AsStrided>({s.base.get()}, s.geometry, x.where());
}

namespace {

Tensors multi_output(Tensors parts) {
  for (Tensor& part : parts) part.impl().is_multi_output_view = true;
  return parts;
}

}  // namespace

namespace {
// A request for more views than memory could hold, such as all elements of a large expanded dim, is refused before it
// begins.
void check_parts(int64_t parts, std::string_view op, SourceLocation where) {
  constexpr int64_t kMost = int64_t{1} << 26;
  if (parts > kMost)
    fail(Category::bad_argument, op, fmt::format("{} parts are more than {}", parts, kMost), where);
}
}  // namespace

Tensors split(Operand x, Dim split_size, int64_t dim) {
  const NamedCall call("split", x.where());
  const int d = dim_of(x, dim, "split");
  const Dim n = shape_of(x)[d];
  if (split_size < 0 || (split_size == 0 && !(n == 0)))
    fail(Category::bad_argument, "split",
         fmt::format("the size {} is not allowed here", to_string(split_size)), x.where());
  if (!n.is_symbolic() && !split_size.is_symbolic() && split_size.raw() > 0)
    check_parts(n.raw() / split_size.raw(), "split", x.where());
  Tensors parts;
  Dim at = 0;
  do {
    const Dim length = at + split_size > n ? n - at : split_size;
    parts.push_back(slice_of(x, d, at, length, 1));
    at += split_size;
  } while (at < n);
  return multi_output(std::move(parts));
}

Tensors split(Operand x, const IntArray& sections, int64_t dim) {
  const NamedCall call("split", x.where());
  const int d = dim_of(x, dim, "split");
  Dim sum = 0;
  for (int64_t n : sections) {
    if (n < 0) fail(Category::bad_argument, "split", fmt::format("the size {} is negative", n), x.where());
    sum += n;
  }
  if (!(sum == shape_of(x)[d]))
    fail(Category::shape_mismatch, "split",
         fmt::format("sections of {} in all, dim {} has {}", to_string(sum), d, to_string(shape_of(x)[d])),
         x.where());
  Tensors parts;
  Dim at = 0;
  for (int64_t n : sections) {
    parts.push_back(slice_of(x, d, at, n, 1));
    at += n;
  }
  return multi_output(std::move(parts));
}

Tensors chunk(Operand x, int64_t chunks, int64_t dim) {
  const NamedCall call("chunk", x.where());
  const int d = dim_of(x, dim, "chunk");
  if (chunks < 1) fail(Category::bad_argument, "chunk", fmt::format("{} chunks", chunks), x.where());
  const Dim n = shape_of(x)[d];
  if (n == 0) {
    check_parts(chunks, "chunk", x.where());
    return split(x, IntArray(static_cast<size_t>(chunks), 0), d);
  }
  return split(x, (n - 1) / chunks + 1, d);
}

Tensors unbind(Operand x, int64_t dim) {
  const NamedCall call("unbind", x.where());
  const int d = dim_of(x, dim, "unbind");
  const int64_t n = shape_of(x)[d].value();
  check_parts(n, "unbind", x.where());
  Tensors parts;
  for (int64_t i = 0; i < n; ++i)
    parts.push_back(ops::emit<ops::Select>({x.tensor().get()}, {d, i}, x.where()));
  return multi_output(std::move(parts));
}

}  // namespace retrograd
