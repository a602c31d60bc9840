// Public functions of ops/pooling.h.
#include "ops/pooling.h"

#include "engine/named_call.h"
#include "ops/pooling_parts.h"
#include "ops/reduce.h"

namespace retrograd::inline v0 {
namespace {

using ops::check_pooled;
using ops::per_dim;
using ops::refuse_pool;

ops::WindowAttrs windows(std::string_view op, Operand x, int dims, const IntList& kernel_size,
                         const IntList& stride, const IntList& padding) {
  check_pooled(op, x, dims, 0);
  return {per_dim(op, "kernel_size", kernel_size, dims, x),
          per_dim(op, "stride", stride.empty() ? kernel_size : stride, dims, x),
          per_dim(op, "padding", padding, dims, x)};
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
                                     per_dim(op, "dilation", dilation, dims, x), ceil_mode});
}

Tensor avg_pool(std::string_view op, int dims, Operand x, const IntList& kernel_size, const IntList& stride,
                const IntList& padding, bool ceil_mode, bool count_include_pad,
                std::optional<int64_t> divisor) {
  ops::AvgPoolAttrs attrs{
      windows(op, x, dims, kernel_size, stride, padding), {}, count_include_pad, divisor.value_or(0)};
  if (divisor && *divisor == 0) refuse_pool(op, "divisor_override is 0", x);
  for (int i = 0; i < dims; ++i) {
    // The type rule refuses an invalid stride.
    const Dim in = shape_of(x)[shape_of(x).rank() - dims + i];
    attrs.size.push_back(attrs.stride[i] < 1 ? Dim(1)
                                             : ops::pooled_size(in, attrs.kernel_size[i], attrs.stride[i],
                                                                attrs.padding[i], 1, ceil_mode));
    if (attrs.size.back() < 1) refuse_pool(op, "kernel_size is larger than the padded operand", x);
  }
  return ops::emit<ops::AvgPool>({x.tensor().get()}, attrs, x.where());
}

Shape adaptive_size(std::string_view op, int dims, Operand x, const AdaptiveSize& size) {
  const std::vector<std::optional<int64_t>> wanted = size.of(dims);
  if (wanted.empty())
    refuse_pool(op, fmt::format("{} output sizes for {} dims", size.values.size(), dims), x);
  Shape grid = ops::grid_of(shape_of(x), dims);
  for (int i = 0; i < dims; ++i) {
    const std::optional<int64_t>& one = wanted[static_cast<size_t>(i)];
    if (one && *one < 0) refuse_pool(op, fmt::format("an output size of {}", *one), x);
    if (one) grid[i] = *one;
  }
  return grid;
}

Tensor adaptive_avg_pool(std::string_view op, int dims, Operand x, const AdaptiveSize& size) {
  check_pooled(op, x, dims, 1);
  const Shape grid = adaptive_size(op, dims, x, size);
  const int rank = shape_of(x).rank();
  IntList all;
  for (int i = 0; i < dims; ++i)
    if (grid[i] == 1) all.push_back(rank - dims + i);
  if (all.size() == dims) return mean(x, all, true);  // one window: a reduction is faster
  return ops::emit<ops::AdaptiveAvgPool>({x.tensor().get()}, {grid}, x.where());
}

MaxPoolResult adaptive_max_pool(std::string_view op, int dims, Operand x, const AdaptiveSize& size) {
  check_pooled(op, x, dims, 0);
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
