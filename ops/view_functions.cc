// Public functions of ops/views.h: they check and wrap dims and positions, and emit the views.
#include "ops/views.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/named_call.h"
#include "ops/family_parts.h"

namespace retrograd::inline v0 {

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
