// See ops/patches.h.
#include "ops/patches.h"

#include <limits>

#include <fmt/format.h>

#include "engine/named_call.h"
#include "ops/arithmetic.h"
#include "ops/binary.h"
#include "ops/comparison.h"
#include "ops/family_parts.h"
#include "ops/pooling.h"
#include "ops/rearrange.h"
#include "ops/ternary.h"
#include "ops/unary.h"
#include "ops/widened.h"

namespace retrograd::inline v0 {
namespace {

// The windows of a picture of two dims: arguments checked and completed.
class Windows {
 public:
  Windows(std::string_view op, Operand x, const IntList& kernel, const IntList& dilation,
          const IntList& padding, const IntList& stride)
      : op_(op),
        where_(x.where()),
        kernel_(pair(kernel, "kernel_size", 1)),
        dilation_(pair(dilation, "dilation", 1)),
        padding_(pair(padding, "padding", 0)),
        stride_(pair(stride, "stride", 1)) {}

  /// One entry for each of the two dims.
  IntList pair(IntList list, std::string_view what, int64_t least) const {
    if (list.size() == 1) list.push_back(list[0]);
    if (list.size() != 2) refuse(fmt::format("{} has {} entries for 2 dims", what, list.size()));
    for (int64_t v : list)
      if (v < least || v > INT32_MAX) refuse(fmt::format("{} {} is not from {} to 2^31 - 1", what, v, least));
    return list;
  }
  [[noreturn]] void refuse(std::string_view text, Category category = Category::bad_argument) const {
    fail(category, op_, text, where_);
  }
  /// The number of windows along a dim of `size`.
  Dim count(Dim size, int d) const {
    const Dim windows = ops::pooled_size(size, kernel_[d], stride_[d], padding_[d], dilation_[d], false);
    if (windows < 1) refuse("the kernel is larger than the padded picture");
    return windows;
  }
  Dim places() const { return Dim(kernel_[0]) * Dim(kernel_[1]); }

  /// (N, C, H, W) -> (N, C, windows, windows, kernel, kernel).
  Tensor of(const Tensor& x) const {
    Tensor y = x;
    if (padding_[0] > 0 || padding_[1] > 0)
      y = pad(Operand(y, where_), {padding_[1], padding_[1], padding_[0], padding_[0]});
    for (int d = 0; d < 2; ++d) y = slice(unfold(y, 2 + d, reach(d), stride_[d]), -1, {}, {}, dilation_[d]);
    return y;
  }

  /// The transpose of of(), to pictures of this size.
  Tensor added(const Tensor& windows, const Shape& size) const {
    Tensor y = windows;
    for (int d = 1; d >= 0; --d) y = along(y, size[2 + d], d);
    for (int d = 0; d < 2; ++d)
      if (padding_[d] > 0) y = narrow(y, 2 + d, padding_[d], size[2 + d]);
    return y;
  }

  const IntList& kernel() const { return kernel_; }

 private:
  int64_t reach(int d) const { return (kernel_[d] - 1) * dilation_[d] + 1; }

  // The transpose of the windows of one dim, whose inside is the last dim.
  Tensor along(const Tensor& windows, Dim size, int d) const {
    Tensor y = windows;
    Shape shape = y.impl().shape();
    if (dilation_[d] > 1) {
      shape[shape.rank() - 1] = reach(d);
      y = ops::emit<ops::Transposed<ops::Slice>>(
          {y.get()}, {{shape.rank() - 1, 0, kernel_[d], dilation_[d]}, shape}, where_);
    }
    shape.resize(shape.rank() - 1);
    shape[2 + d] = size + Dim(2 * padding_[d]);
    return ops::emit<ops::Transposed<ops::Unfold>>({y.get()}, {{2 + d, reach(d), stride_[d]}, shape}, where_);
  }

  std::string_view op_;
  SourceLocation where_;
  IntList kernel_, dilation_, padding_, stride_;
};

// The operand with a batch: it has `dims` dims, or one less. No other dim may be empty.
Tensor batched(const Windows& windows, Operand x, int dims) {
  const Shape& shape = shape_of(x);
  if (shape.rank() != dims && shape.rank() != dims - 1)
    windows.refuse(fmt::format("{} or {} dims are needed, not {}", dims - 1, dims, describe(x.tensor())),
                   Category::bad_dim);
  for (int i = shape.rank() - dims + 1; i < shape.rank(); ++i)
    if (shape[i] == Dim(0)) windows.refuse(fmt::format("dim {} of {} is empty", i, describe(x.tensor())));
  return shape.rank() == dims ? x.tensor() : unsqueeze(x, 0);
}

}  // namespace

Tensor im2col(Operand x, const IntList& kernel_size, const IntList& dilation, const IntList& padding,
              const IntList& stride) {
  const NamedCall call("im2col", x.where());
  const Windows windows("im2col", x, kernel_size, dilation, padding, stride);
  const Tensor pictures = batched(windows, x, 4);
  const Shape& shape = pictures.impl().shape();
  const Dim count = windows.count(shape[2], 0) * windows.count(shape[3], 1);
  const Tensor turned = permute(windows.of(pictures), {0, 1, 4, 5, 2, 3});
  const Tensor columns = reshape_to(turned, {shape[0], shape[1] * windows.places(), count});
  return shape_of(x).rank() == 4 ? columns : squeeze(columns, {0});
}

Tensor col2im(Operand x, const IntList& output_size, const IntList& kernel_size, const IntList& dilation,
              const IntList& padding, const IntList& stride) {
  const NamedCall call("col2im", x.where());
  const Windows windows("col2im", x, kernel_size, dilation, padding, stride);
  const IntList size = windows.pair(output_size, "output_size", 1);
  if (!is_floating(x.tensor().dtype()))
    windows.refuse(fmt::format("{} is not floating", describe(x.tensor())), Category::dtype_mismatch);
  const Tensor columns = batched(windows, x, 3);
  const Shape& shape = columns.impl().shape();
  const Dim high = windows.count(size[0], 0), wide = windows.count(size[1], 1), places = windows.places();
  if (!(shape[1] % places == Dim(0)))
    windows.refuse(fmt::format("{} of {} are no channels of {} elements", to_string(shape[1]),
                               describe(x.tensor()), to_string(places)),
                   Category::shape_mismatch);
  if (!(shape[2] == high * wide))
    windows.refuse(fmt::format("{} has not {} windows", describe(x.tensor()), to_string(high * wide)),
                   Category::shape_mismatch);
  const ops::Widened widened(columns);
  const Dim channels = shape[1] / places;
  const Tensor parts = reshape_to(Operand(widened(columns), x.where()),
                                  {shape[0], channels, windows.kernel()[0], windows.kernel()[1], high, wide});
  const Tensor sum =
      widened.back(windows.added(permute(parts, {0, 1, 4, 5, 2, 3}), {shape[0], channels, size[0], size[1]}));
  return shape_of(x).rank() == 3 ? sum : squeeze(sum, {0});
}

namespace {

// F: the pools of this number of dims.
template <auto MaxPool, auto AvgPool>
Tensor lp_pool(std::string_view op, int dims, Operand x, Scalar p, const IntList& kernel_size,
               const IntList& stride, bool ceil_mode) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (p == Scalar(0)) fail(Category::bad_argument, op, "norm_type is 0", x.where());
  if (p == Scalar(kInfinity)) return MaxPool(abs(x), kernel_size, stride, 0, 1, ceil_mode);
  if (p == Scalar(-kInfinity)) return neg(MaxPool(neg(abs(x)), kernel_size, stride, 0, 1, ceil_mode));
  const ops::Widened wide(x.tensor());
  const Tensor powers = pow(Operand(wide(x.tensor()), x.where()), p);
  const Tensor means = AvgPool(powers, kernel_size, stride, 0, ceil_mode);
  double elements = 1;
  for (int d = 0; d < dims; ++d)
    elements *= static_cast<double>(kernel_size[kernel_size.size() == 1 ? 0 : d]);
  // The root has an infinite derivative at 0, which must not reach the elements.
  const Tensor sums = mul(where(eq(means, 0), 0, means), elements);
  return wide.back(pow(sums, Scalar(1.0) / p));
}

Tensor mean_pool1d(Operand x, const IntList& kernel, const IntList& stride, const IntList& padding,
                   bool ceil) {
  return avg_pool1d(x, kernel, stride, padding, ceil);
}
Tensor mean_pool2d(Operand x, const IntList& kernel, const IntList& stride, const IntList& padding,
                   bool ceil) {
  return avg_pool2d(x, kernel, stride, padding, ceil);
}
Tensor mean_pool3d(Operand x, const IntList& kernel, const IntList& stride, const IntList& padding,
                   bool ceil) {
  return avg_pool3d(x, kernel, stride, padding, ceil);
}

}  // namespace

Tensor lp_pool1d(Operand x, Scalar norm_type, const IntList& kernel_size, const IntList& stride,
                 bool ceil_mode) {
  const NamedCall call("lp_pool1d", x.where());
  return lp_pool<max_pool1d, mean_pool1d>("lp_pool1d", 1, x, norm_type, kernel_size, stride, ceil_mode);
}
Tensor lp_pool2d(Operand x, Scalar norm_type, const IntList& kernel_size, const IntList& stride,
                 bool ceil_mode) {
  const NamedCall call("lp_pool2d", x.where());
  return lp_pool<max_pool2d, mean_pool2d>("lp_pool2d", 2, x, norm_type, kernel_size, stride, ceil_mode);
}
Tensor lp_pool3d(Operand x, Scalar norm_type, const IntList& kernel_size, const IntList& stride,
                 bool ceil_mode) {
  const NamedCall call("lp_pool3d", x.where());
  return lp_pool<max_pool3d, mean_pool3d>("lp_pool3d", 3, x, norm_type, kernel_size, stride, ceil_mode);
}

}  // namespace retrograd
