// Public functions of ops/pooling.h.
#include <fmt/format.h>

#include "ops/family_parts.h"
#include "ops/pooling.h"

#include "engine/named_call.h"
#include "ops/reduce.h"

namespace retrograd::inline v0 {
namespace {

[[noreturn]] void refuse(std::string_view op, std::string_view text, Operand x) {
  fail(Category::bad_argument, op, text, x.where());
}

// One channel dim before the grid, and perhaps a batch. From dim `filled` on no dim may be empty; with a batch, from
// the next one on.
void check_operand(std::string_view op, Operand x, int dims, int filled) {
  const Shape& shape = shape_of(x);
  if (shape.rank() != dims + 1 && shape.rank() != dims + 2)
    fail(Category::bad_dim, op,
         fmt::format("{} or {} dims are needed, not {}", dims + 1, dims + 2, describe(x.tensor())),
         x.where());
  for (int i = filled + shape.rank() - dims - 1; i < shape.rank(); ++i)
    if (shape[i] == 0) refuse(op, fmt::format("dim {} of {} is empty", i, describe(x.tensor())), x);
}

// An entry for each dim, from one for all of them.
IntList spread(std::string_view op, std::string_view name, const IntList& list, int dims, Operand x) {
  if (list.size() == dims) return list;
  if (list.size() != 1) refuse(op, fmt::format("{} has {} entries for {} dims", name, list.size(), dims), x);
  IntList all;
  for (int i = 0; i < dims; ++i) all.push_back(list[0]);
  return all;
}

ops::WindowAttrs windows(std::string_view op, Operand x, int dims, const IntList& kernel_size,
                         const IntList& stride, const IntList& padding) {
  check_operand(op, x, dims, 0);
  return {spread(op, "kernel_size", kernel_size, dims, x),
          spread(op, "stride", stride.empty() ? kernel_size : stride, dims, x),
          spread(op, "padding", padding, dims, x)};
}

template <class Op>
MaxPoolResult emit_pair(Operand x, typename Op::Attrs attrs) {
  TensorImpl* operand = x.tensor().get();
  Tensor results[2];
  Emitter::current().emit({&ops::info<Op>, {&operand, 1}, &attrs, effective_location(x.where()), 2}, results);
  return {results[0], results[1]};
}

MaxPoolResult max_pool(std::string_view op, int dims, Operand x, const IntList& kernel_size,
                       const IntList& stride, const IntList& padding, const IntList& dilation,
                       bool ceil_mode) {
  return emit_pair<ops::MaxPool>(x, {windows(op, x, dims, kernel_size, stride, padding),
                                     spread(op, "dilation", dilation, dims, x), ceil_mode});
}

Tensor avg_pool(std::string_view op, int dims, Operand x, const IntList& kernel_size, const IntList& stride,
                const IntList& padding, bool ceil_mode, bool count_include_pad,
                std::optional<int64_t> divisor) {
  ops::AvgPoolAttrs attrs{
      windows(op, x, dims, kernel_size, stride, padding), {}, count_include_pad, divisor.value_or(0)};
  if (divisor && *divisor == 0) refuse(op, "divisor_override is 0", x);
  for (int i = 0; i < dims; ++i) {
    // The type rule refuses an invalid stride.
    const Dim in = shape_of(x)[shape_of(x).rank() - dims + i];
    attrs.size.push_back(attrs.stride[i] < 1 ? Dim(1)
                                             : ops::pooled_size(in, attrs.kernel_size[i], attrs.stride[i],
                                                                attrs.padding[i], 1, ceil_mode));
    if (attrs.size.back() < 1) refuse(op, "kernel_size is larger than the padded operand", x);
  }
  return ops::emit<ops::AvgPool>({x.tensor().get()}, attrs, x.where());
}

Shape adaptive_size(std::string_view op, int dims, Operand x, const AdaptiveSize& size) {
  const std::vector<std::optional<int64_t>> wanted = size.of(dims);
  if (wanted.empty()) refuse(op, fmt::format("{} output sizes for {} dims", size.values.size(), dims), x);
  Shape grid = ops::grid_of(shape_of(x), dims);
  for (int i = 0; i < dims; ++i) {
    const std::optional<int64_t>& one = wanted[static_cast<size_t>(i)];
    if (one && *one < 0) refuse(op, fmt::format("an output size of {}", *one), x);
    if (one) grid[i] = *one;
  }
  return grid;
}

Tensor adaptive_avg_pool(std::string_view op, int dims, Operand x, const AdaptiveSize& size) {
  check_operand(op, x, dims, 1);
  const Shape grid = adaptive_size(op, dims, x, size);
  const int rank = shape_of(x).rank();
  IntList all;
  for (int i = 0; i < dims; ++i)
    if (grid[i] == 1) all.push_back(rank - dims + i);
  if (all.size() == dims) return mean(x, all, true);  // one window: a reduction is faster
  return ops::emit<ops::AdaptiveAvgPool>({x.tensor().get()}, {grid}, x.where());
}

MaxPoolResult adaptive_max_pool(std::string_view op, int dims, Operand x, const AdaptiveSize& size) {
  check_operand(op, x, dims, 0);
  return emit_pair<ops::AdaptiveMaxPool>(x, {adaptive_size(op, dims, x, size)});
}

}  // namespace

MaxPoolResult max_pool1d_with_indices(Operand x, const IntList& kernel_size, const IntList& stride,
                                      const IntList& padding, const IntList& dilation, bool ceil_mode) {
  const NamedCall call("max_pool1d_with_indices", x.where());
  return max_pool("max_pool1d", 1, x, kernel_size, stride, padding, dilation, ceil_mode);
}

MaxPoolResult max_pool2d_with_indices(Operand x, const IntList& kernel_size, const IntList& stride,
                                      const IntList& padding, const IntList& dilation, bool ceil_mode) {
  const NamedCall call("max_pool2d_with_indices", x.where());
  return max_pool("max_pool2d", 2, x, kernel_size, stride, padding, dilation, ceil_mode);
}

MaxPoolResult max_pool3d_with_indices(Operand x, const IntList& kernel_size, const IntList& stride,
                                      const IntList& padding, const IntList& dilation, bool ceil_mode) {
  const NamedCall call("max_pool3d_with_indices", x.where());
  return max_pool("max_pool3d", 3, x, kernel_size, stride, padding, dilation, ceil_mode);
}

Tensor max_pool1d(Operand x, const IntList& kernel_size, const IntList& stride, const IntList& padding,
                  const IntList& dilation, bool ceil_mode) {
  const NamedCall call("max_pool1d", x.where());
  return max_pool1d_with_indices(x, kernel_size, stride, padding, dilation, ceil_mode).values;
}

Tensor max_pool2d(Operand x, const IntList& kernel_size, const IntList& stride, const IntList& padding,
                  const IntList& dilation, bool ceil_mode) {
  const NamedCall call("max_pool2d", x.where());
  return max_pool2d_with_indices(x, kernel_size, stride, padding, dilation, ceil_mode).values;
}

Tensor max_pool3d(Operand x, const IntList& kernel_size, const IntList& stride, const IntList& padding,
                  const IntList& dilation, bool ceil_mode) {
  const NamedCall call("max_pool3d", x.where());
  return max_pool3d_with_indices(x, kernel_size, stride, padding, dilation, ceil_mode).values;
}

Tensor avg_pool1d(Operand x, const IntList& kernel_size, const IntList& stride, const IntList& padding,
                  bool ceil_mode, bool count_include_pad) {
  const NamedCall call("avg_pool1d", x.where());
  return avg_pool("avg_pool1d", 1, x, kernel_size, stride, padding, ceil_mode, count_include_pad, {});
}

Tensor avg_pool2d(Operand x, const IntList& kernel_size, const IntList& stride, const IntList& padding,
                  bool ceil_mode, bool count_include_pad, std::optional<int64_t> divisor_override) {
  const NamedCall call("avg_pool2d", x.where());
  return avg_pool("avg_pool2d", 2, x, kernel_size, stride, padding, ceil_mode, count_include_pad,
                  divisor_override);
}

Tensor avg_pool3d(Operand x, const IntList& kernel_size, const IntList& stride, const IntList& padding,
                  bool ceil_mode, bool count_include_pad, std::optional<int64_t> divisor_override) {
  const NamedCall call("avg_pool3d", x.where());
  return avg_pool("avg_pool3d", 3, x, kernel_size, stride, padding, ceil_mode, count_include_pad,
                  divisor_override);
}

Tensor adaptive_avg_pool1d(Operand x, const AdaptiveSize& output_size) {
  const NamedCall call("adaptive_avg_pool1d", x.where());
  return adaptive_avg_pool("adaptive_avg_pool1d", 1, x, output_size);
}
Tensor adaptive_avg_pool2d(Operand x, const AdaptiveSize& output_size) {
  const NamedCall call("adaptive_avg_pool2d", x.where());
  return adaptive_avg_pool("adaptive_avg_pool2d", 2, x, output_size);
}
Tensor adaptive_avg_pool3d(Operand x, const AdaptiveSize& output_size) {
  const NamedCall call("adaptive_avg_pool3d", x.where());
  return adaptive_avg_pool("adaptive_avg_pool3d", 3, x, output_size);
}

MaxPoolResult adaptive_max_pool1d_with_indices(Operand x, const AdaptiveSize& output_size) {
  const NamedCall call("adaptive_max_pool1d_with_indices", x.where());
  return adaptive_max_pool("adaptive_max_pool1d", 1, x, output_size);
}
MaxPoolResult adaptive_max_pool2d_with_indices(Operand x, const AdaptiveSize& output_size) {
  const NamedCall call("adaptive_max_pool2d_with_indices", x.where());
  return adaptive_max_pool("adaptive_max_pool2d", 2, x, output_size);
}
MaxPoolResult adaptive_max_pool3d_with_indices(Operand x, const AdaptiveSize& output_size) {
  const NamedCall call("adaptive_max_pool3d_with_indices", x.where());
  return adaptive_max_pool("adaptive_max_pool3d", 3, x, output_size);
}

Tensor adaptive_max_pool1d(Operand x, const AdaptiveSize& output_size) {
  const NamedCall call("adaptive_max_pool1d", x.where());
  return adaptive_max_pool1d_with_indices(x, output_size).values;
}
Tensor adaptive_max_pool2d(Operand x, const AdaptiveSize& output_size) {
  const NamedCall call("adaptive_max_pool2d", x.where());
  return adaptive_max_pool2d_with_indices(x, output_size).values;
}
Tensor adaptive_max_pool3d(Operand x, const AdaptiveSize& output_size) {
  const NamedCall call("adaptive_max_pool3d", x.where());
  return adaptive_max_pool3d_with_indices(x, output_size).values;
}

}  // namespace retrograd
