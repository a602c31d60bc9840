// The public functions of ops/convolution.h: they check their arguments, convert them to the form of the ops and
// compute the size of the result.
#include <fmt/format.h>

#include <algorithm>

#include "ops/convolution.h"

#include "engine/named_call.h"
#include "ops/views.h"

namespace retrograd::inline v0 {

ConvPadding::ConvPadding(std::string_view name, SourceLocation where) : same(name == "same") {
  if (!same && name != "valid")
    fail(Category::bad_argument, "padding", fmt::format("no padding is called '{}'", name), where);
}

namespace {

// The arguments of a public function, checked and completed.
class Arguments {
 public:
  Arguments(std::string_view op, int spatial, Operand input, const Tensor& weight, int64_t groups)
      : op_(op), spatial_(spatial), where_(input.where()), x_(input.tensor()), weight_(weight) {
    const int rank = x_.dim();
    if (rank != spatial + 1 && rank != spatial + 2)
      refuse(Category::bad_dim,
             fmt::format("the input {} does not have {} spatial dims", describe(x_), spatial));
    if (weight.dim() != spatial + 2)
      refuse(Category::bad_dim,
             fmt::format("the weight {} does not have {} dims", describe(weight), spatial + 2));
    if (groups < 1) refuse(Category::bad_argument, "groups must be at least 1");
    single_ = rank == spatial + 1;
    if (single_) x_ = unsqueeze(Operand(x_, where_), 0);
    attrs_.groups = groups;
  }

  /// `list` with an entry for each spatial dim; all are at least `least`, and small enough that products do not
  /// overflow.
  IntList each(IntList list, std::string_view what, int64_t least) const {
    if (list.size() == 1)
      for (int d = 1; d < spatial_; ++d) list.push_back(list[0]);
    if (list.size() != spatial_)
      refuse(Category::bad_argument, fmt::format("{} needs 1 or {} numbers", what, spatial_));
    if (std::ranges::any_of(list, [&](int64_t v) { return v < least; }))
      refuse(Category::bad_argument, fmt::format("{} must be at least {}", what, least));
    if (std::ranges::any_of(list, [&](int64_t v) { return v > INT32_MAX; }))
      refuse(Category::bad_argument, fmt::format("{} must be less than 2^31", what));
    return list;
  }

  /// Sets stride, dilation and padding, by number or name.
  void set(const IntList& stride, const ConvPadding& padding, const IntList& dilation) {
    attrs_.stride = each(stride, "stride", 1);
    attrs_.dilation = each(dilation, "dilation", 1);
    same_ = padding.same;
    if (same_ && std::ranges::any_of(attrs_.stride, [](int64_t s) { return s != 1; }))
      refuse(Category::bad_argument, "padding 'same' needs stride 1");
    attrs_.padding = each(padding.sizes, "padding", 0);
    for (int d = 0; d < spatial_; ++d) {
      if (kernel(d) < Dim(1) || size(d) < Dim(1))
        refuse(Category::bad_argument, "the kernel or the input has no places");
      if (same_) attrs_.padding[d] = (reach(d) / Dim(2)).value();
    }
  }

  Tensor convolution(const Tensor& bias) {
    for (int d = 0; d < spatial_; ++d) {
      const Dim last = size(d) + Dim(2 * attrs_.padding[d]) - reach(d) - Dim(1);
      if (!same_ && last < Dim(0))
        refuse(Category::bad_argument, "the kernel is larger than the padded input");
      attrs_.size.push_back(same_ ? size(d) : last / Dim(attrs_.stride[d]) + Dim(1));
    }
    return run<ops::Convolution>(bias);
  }

  Tensor transpose(const Tensor& bias, const IntList& output_padding) {
    const IntList extra = each(output_padding, "output_padding", 0);
    for (int d = 0; d < spatial_; ++d) {
      if (extra[d] >= std::max(attrs_.stride[d], attrs_.dilation[d]))
        refuse(Category::bad_argument, "output_padding must be less than stride or dilation");
      const Dim places = (size(d) - Dim(1)) * Dim(attrs_.stride[d]) - Dim(2 * attrs_.padding[d]) + reach(d) +
                         Dim(extra[d] + 1);
      if (places < Dim(1)) refuse(Category::bad_argument, "no place of the result is left");
      attrs_.size.push_back(places);
    }
    return run<ops::ConvolutionTranspose>(bias);
  }

 private:
  [[noreturn]] void refuse(Category category, std::string_view text) const {
    fail(category, op_, text, where_);
  }
  Dim size(int d) const { return x_.impl().shape()[d + 2]; }
  Dim kernel(int d) const { return weight_.impl().shape()[d + 2]; }
  /// The distance of the last position of the kernel from the first.
  Dim reach(int d) const { return (kernel(d) - Dim(1)) * Dim(attrs_.dilation[d]); }

  template <class Op>
  Tensor run(const Tensor& bias) const {
    const Tensor y = ops::emit<Op>({x_.get(), weight_.get(), bias.get()}, attrs_, where_);
    return single_ ? squeeze(Operand(y, where_), {0}) : y;
  }

  std::string_view op_;
  int spatial_;
  SourceLocation where_;
  Tensor x_;
  const Tensor& weight_;
  ops::ConvolutionAttrs attrs_;
  bool single_, same_ = false;
};

Tensor conv(std::string_view op, int spatial, Operand input, const Tensor& weight, const Tensor& bias,
            const IntList& stride, const ConvPadding& padding, const IntList& dilation, int64_t groups) {
  Arguments arguments(op, spatial, input, weight, groups);
  arguments.set(stride, padding, dilation);
  return arguments.convolution(bias);
}

Tensor conv_transpose(std::string_view op, int spatial, Operand input, const Tensor& weight,
                      const Tensor& bias, const IntList& stride, const IntList& padding,
                      const IntList& output_padding, int64_t groups, const IntList& dilation) {
  Arguments arguments(op, spatial, input, weight, groups);
  arguments.set(stride, padding, dilation);
  return arguments.transpose(bias, output_padding);
}

}  // namespace

Tensor conv1d(Operand x, const Tensor& weight, const Tensor& bias, const IntList& stride,
              const ConvPadding& padding, const IntList& dilation, int64_t groups) {
  const NamedCall call("conv1d", x.where());
  return conv("conv1d", 1, x, weight, bias, stride, padding, dilation, groups);
}
Tensor conv2d(Operand x, const Tensor& weight, const Tensor& bias, const IntList& stride,
              const ConvPadding& padding, const IntList& dilation, int64_t groups) {
  const NamedCall call("conv2d", x.where());
  return conv("conv2d", 2, x, weight, bias, stride, padding, dilation, groups);
}
Tensor conv3d(Operand x, const Tensor& weight, const Tensor& bias, const IntList& stride,
              const ConvPadding& padding, const IntList& dilation, int64_t groups) {
  const NamedCall call("conv3d", x.where());
  return conv("conv3d", 3, x, weight, bias, stride, padding, dilation, groups);
}

Tensor conv_transpose1d(Operand x, const Tensor& weight, const Tensor& bias, const IntList& stride,
                        const IntList& padding, const IntList& output_padding, int64_t groups,
                        const IntList& dilation) {
  const NamedCall call("conv_transpose1d", x.where());
  return conv_transpose("conv_transpose1d", 1, x, weight, bias, stride, padding, output_padding, groups,
                        dilation);
}
Tensor conv_transpose2d(Operand x, const Tensor& weight, const Tensor& bias, const IntList& stride,
                        const IntList& padding, const IntList& output_padding, int64_t groups,
                        const IntList& dilation) {
  const NamedCall call("conv_transpose2d", x.where());
  return conv_transpose("conv_transpose2d", 2, x, weight, bias, stride, padding, output_padding, groups,
                        dilation);
}
Tensor conv_transpose3d(Operand x, const Tensor& weight, const Tensor& bias, const IntList& stride,
                        const IntList& padding, const IntList& output_padding, int64_t groups,
                        const IntList& dilation) {
  const NamedCall call("conv_transpose3d", x.where());
  return conv_transpose("conv_transpose3d", 3, x, weight, bias, stride, padding, output_padding, groups,
                        dilation);
}

}  // namespace retrograd
