// See nn/pooling.h.
#include "nn/pooling.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/patches.h"

namespace retrograd::inline v0::nn {
namespace {

// "kernel_size=[3, 3], stride=[2, 2]".
std::string kernel_text(int dims, const IntList& kernel_size, const IntList& stride) {
  return fmt::format("kernel_size={}, stride={}", detail::list_text(kernel_size, dims),
                     detail::list_text(stride.empty() ? kernel_size : stride, dims));
}

template <class T>
std::string numbers_text(const PerDim<T>& numbers) {
  if (numbers.is_one) return fmt::format("{}", numbers.values[0]);
  return fmt::format("[{}]", fmt::join(numbers.values, ", "));
}

}  // namespace

// ---- max ----

template <int Dims>
MaxPoolResult MaxPool<Dims>::forward_with_indices(Operand x) const {
  constexpr auto function = Dims == 1   ? max_pool1d_with_indices
                            : Dims == 2 ? max_pool2d_with_indices
                                        : max_pool3d_with_indices;
  return function(x, kernel_size, options.stride, options.padding, options.dilation, options.ceil_mode);
}

template <int Dims>
std::string MaxPool<Dims>::extra_repr() const {
  return fmt::format("{}, padding={}, dilation={}, ceil_mode={}",
                     kernel_text(Dims, kernel_size, options.stride), detail::list_text(options.padding, Dims),
                     detail::list_text(options.dilation, Dims), options.ceil_mode);
}

template <int Dims>
Tensor MaxUnpool<Dims>::forward(Operand x, const Tensor& indices, const IntList& output_size) const {
  constexpr auto function = Dims == 1 ? max_unpool1d : Dims == 2 ? max_unpool2d : max_unpool3d;
  return function(x, indices, kernel_size, options.stride, options.padding, output_size);
}

template <int Dims>
std::string MaxUnpool<Dims>::extra_repr() const {
  return fmt::format("{}, padding={}", kernel_text(Dims, kernel_size, options.stride),
                     detail::list_text(options.padding, Dims));
}

template <int Dims>
requires(Dims == 2 || Dims == 3) MaxPoolResult FractionalMaxPool<Dims>::forward_with_indices(Operand x)
const {
  constexpr auto function =
      Dims == 2 ? fractional_max_pool2d_with_indices : fractional_max_pool3d_with_indices;
  return function(x, kernel_size, {options.output_size, options.output_ratio}, random_samples);
}

template <int Dims>
requires(Dims == 2 || Dims == 3) std::string FractionalMaxPool<Dims>::extra_repr()
const {
  const std::string size = options.output_ratio.given()
                               ? "output_ratio=" + numbers_text(options.output_ratio)
                               : "output_size=" + detail::list_text(options.output_size, Dims);
  return fmt::format("kernel_size={}, {}", detail::list_text(kernel_size, Dims), size);
}

// ---- averages and norms ----

template <int Dims>
AvgPool<Dims>::AvgPool(Module* parent, std::string name, const IntList& kernel_size, AvgPoolOptions options,
                       SourceLocation where)
    : Layer<AvgPool>(parent, std::move(name)), kernel_size(kernel_size), options(options) {
  if (Dims == 1 && options.divisor_override)
    fail(Category::bad_argument, type_name, "there is no divisor_override for one dim", where);
}

template <int Dims>
Tensor AvgPool<Dims>::forward(Operand x) const {
  const auto& [stride, padding, ceil_mode, count_include_pad, divisor] = options;
  if constexpr (Dims == 1) {
    return avg_pool1d(x, kernel_size, stride, padding, ceil_mode, count_include_pad);
  } else {
    constexpr auto function = Dims == 2 ? avg_pool2d : avg_pool3d;
    return function(x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor);
  }
}

template <int Dims>
std::string AvgPool<Dims>::extra_repr() const {
  return fmt::format("{}, padding={}", kernel_text(Dims, kernel_size, options.stride),
                     detail::list_text(options.padding, Dims));
}

template <int Dims>
Tensor LPPool<Dims>::forward(Operand x) const {
  constexpr auto function = Dims == 1 ? lp_pool1d : Dims == 2 ? lp_pool2d : lp_pool3d;
  return function(x, norm_type, kernel_size, options.stride, options.ceil_mode);
}

template <int Dims>
std::string LPPool<Dims>::extra_repr() const {
  return fmt::format("norm_type={}, {}, ceil_mode={}", norm_type,
                     kernel_text(Dims, kernel_size, options.stride), options.ceil_mode);
}

// ---- adaptive ----

template <class Self, int Dims>
std::string AdaptivePool<Self, Dims>::extra_repr() const {
  std::vector<std::string> sizes;
  for (const std::optional<int64_t>& size : output_size.of(Dims))
    sizes.push_back(size ? std::to_string(*size) : "None");
  return fmt::format("output_size=[{}]", fmt::join(sizes, ", "));
}

template <int Dims>
Tensor AdaptiveAvgPool<Dims>::forward(Operand x) const {
  constexpr auto function = Dims == 1   ? adaptive_avg_pool1d
                            : Dims == 2 ? adaptive_avg_pool2d
                                        : adaptive_avg_pool3d;
  return function(x, this->output_size);
}

template <int Dims>
MaxPoolResult AdaptiveMaxPool<Dims>::forward_with_indices(Operand x) const {
  constexpr auto function = Dims == 1   ? adaptive_max_pool1d_with_indices
                            : Dims == 2 ? adaptive_max_pool2d_with_indices
                                        : adaptive_max_pool3d_with_indices;
  return function(x, this->output_size);
}

// ---- resampling ----

std::string Upsample::extra_repr() const {
  const std::string size = options.scale_factor.given() ? "scale_factor=" + numbers_text(options.scale_factor)
                                                        : "size=" + numbers_text(options.size);
  return fmt::format("{}, mode={}", size, options.mode);
}

template class MaxPool<1>;
template class MaxPool<2>;
template class MaxPool<3>;
template class MaxUnpool<1>;
template class MaxUnpool<2>;
template class MaxUnpool<3>;
template class FractionalMaxPool<2>;
template class FractionalMaxPool<3>;
template class AvgPool<1>;
template class AvgPool<2>;
template class AvgPool<3>;
template class LPPool<1>;
template class LPPool<2>;
template class LPPool<3>;
template struct AdaptiveAvgPool<1>;
template struct AdaptiveAvgPool<2>;
template struct AdaptiveAvgPool<3>;
template struct AdaptiveMaxPool<1>;
template struct AdaptiveMaxPool<2>;
template struct AdaptiveMaxPool<3>;
template class AdaptivePool<AdaptiveAvgPool<1>, 1>;
template class AdaptivePool<AdaptiveAvgPool<2>, 2>;
template class AdaptivePool<AdaptiveAvgPool<3>, 3>;
template class AdaptivePool<AdaptiveMaxPool<1>, 1>;
template class AdaptivePool<AdaptiveMaxPool<2>, 2>;
template class AdaptivePool<AdaptiveMaxPool<3>, 3>;

Upsample::Upsample(Module* parent, std::string name, InterpolateOptions options)
    : Layer(parent, std::move(name)), options(std::move(options)) {}
std::tuple<InterpolateOptions> Upsample::arguments() const { return {options}; }

}  // namespace retrograd::nn
