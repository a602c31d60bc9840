// Names of libtorch's at:: and c10:: that programs use and that are no functions of retrograd under the same name, and
// ATen's functions whose parameters are not those of retrograd's. torch/functions.h has all others.
#pragma once

#include <concepts>
#include <cstdio>
#include <optional>
#include <tuple>

#include "engine/float_formats.h"
#include "torch/functions.h"

#pragma GCC visibility push(default)
namespace torch {

using retrograd::BFloat16;
using retrograd::Half;

namespace cuda {
/// No kernel is cuDNN's.
inline bool cudnn_is_available() { return false; }
}  // namespace cuda

/// torch::Reduction::Sum
using Reduction = retrograd::LossReduction;

/// retrograd::cross_entropy under ATen's name.
inline Tensor cross_entropy_loss(retrograd::Operand self, const Tensor& target, const Tensor& weight = {},
                                 Reduction reduction = Reduction::Mean, int64_t ignore_index = -100,
                                 retrograd::Scalar label_smoothing = 0.0) {
  return retrograd::cross_entropy(self, target, weight, reduction, ignore_index, label_smoothing);
}

/// As << does; the width of a line is the library's.
inline std::ostream& print(std::ostream& out, const Tensor& tensor, int64_t /*linesize*/ = 80) {
  return out << tensor;
}

// Other names of libtorch for some of these.
inline Tensor concat(const retrograd::Tensors& tensors, int64_t dim = 0) { return cat(tensors, dim); }
inline Tensor concatenate(const retrograd::Tensors& tensors, int64_t dim = 0) { return cat(tensors, dim); }
inline Tensor i0(const retrograd::Operand& x) { return retrograd::special::i0(x); }
inline Tensor log_sigmoid(const retrograd::Operand& x) { return retrograd::logsigmoid(x); }
inline Tensor row_stack(const retrograd::Tensors& tensors) { return vstack(tensors); }
inline Tensor trapz(const retrograd::Operand& y, const Tensor& x, int64_t dim = -1) {
  return retrograd::trapezoid(y, x, dim);
}
inline Tensor trapz(const retrograd::Operand& y, Scalar dx = 1, int64_t dim = -1) {
  return retrograd::trapezoid(y, dx, dim);
}
inline Tensor constant_pad_nd(const retrograd::Operand& x, IntArrayRef pad, Scalar value = 0) {
  return retrograd::pad(x, pad.vec(), "constant", value);
}
inline bool is_same_size(const Tensor& a, const Tensor& b) { return a.sizes() == b.sizes(); }
inline bool is_floating_point(const Tensor& x) { return x.is_floating_point(); }

/// elu(x, alpha = 1, scale = 1, input_scale = 1): scale * x if x > 0, else scale * alpha * (e^(input_scale * x) - 1).
inline constexpr retrograd::ops::Function<retrograd::ops::Elu> elu;

/// (count, r): each choice of r elements of a vector, in the order of their places, which may be repeated with
/// `with_replacement`. Error(bad_dim) unless there is one dim, Error(bad_argument) for a negative r.
Tensor combinations(const retrograd::Operand& x, int64_t r = 2, bool with_replacement = false);

/// The positions where the condition holds: one int64 vector for each dim.
inline retrograd::Tensors where(const retrograd::Operand& condition) {
  return retrograd::unbind(retrograd::nonzero(condition), 1);
}
/// All expanded to the shape that they broadcast to.
retrograd::Tensors broadcast_tensors(const retrograd::Tensors& tensors,
                                     retrograd::SourceLocation where = retrograd::SourceLocation::current());
inline retrograd::UniqueResult _unique2(const retrograd::Operand& x, bool sorted = true,
                                        bool return_inverse = false, bool return_counts = false) {
  return retrograd::unique(x, sorted, return_inverse, return_counts);
}
inline std::tuple<Tensor, Tensor> _unique(const retrograd::Operand& x, bool sorted = true,
                                          bool return_inverse = false) {
  const auto [values, inverse, counts] = retrograd::unique(x, sorted, return_inverse);
  return {values, inverse};
}
inline retrograd::UniqueResult unique_dim(const retrograd::Operand& x, int64_t dim, bool sorted = true,
                                          bool return_inverse = false, bool return_counts = false) {
  return retrograd::unique(x, sorted, return_inverse, return_counts, dim);
}
Tensor upsample_nearest2d(const retrograd::Operand& x, IntArrayRef output_size);
Tensor upsample_bilinear2d(const retrograd::Operand& x, IntArrayRef output_size, bool align_corners);

// ATen's parameters where they are not the library's. Templates where the library's
// form would become ambiguous.

/// Along `dim`, or the first dim of `a` that has size 3. Error(bad_dim) when there is none.
inline Tensor cross(const retrograd::Operand& a, const retrograd::Operand& b,
                    std::optional<int64_t> dim = {}) {
  if (dim) return retrograd::linalg::cross(a, b, *dim);
  int64_t first = 0;
  for (const int64_t size : a.tensor("cross").sizes()) {
    if (size == 3) return retrograd::linalg::cross(a, b, first);
    ++first;
  }
  retrograd::fail(retrograd::Category::bad_dim, "cross",
                  "no dim has size 3. Hint: the operands are vectors of 3", a.where());
}
/// A negative padding_idx: none. Error(unsupported) for sparse gradients.
template <std::integral Index>
Tensor embedding(const retrograd::Operand& weight, const Tensor& indices, Index padding_idx,
                 bool scale_grad_by_freq = false, bool sparse = false) {
  if (sparse)
    retrograd::fail(retrograd::Category::unsupported, "embedding",
                    "there are no sparse gradients. Hint: sparse = false", weight.where());
  std::optional<int64_t> padding;
  if (padding_idx >= 0) padding = static_cast<int64_t>(padding_idx);
  return retrograd::embedding(weight, indices, padding, scale_grad_by_freq);
}
template <std::integral Mode, class... T>
Tensor embedding_bag(Tensor, Tensor, Tensor, bool, Mode, T&&...) = delete;  // (indices, weight, ..., "sum")
template <std::same_as<bool> Stable>
retrograd::ValuesAndIndices sort(const retrograd::Operand& x, Stable stable, int64_t dim = -1,
                                 bool descending = false) {
  return retrograd::sort(x, dim, descending, stable);
}
template <std::same_as<bool> Stable>
Tensor argsort(const retrograd::Operand& x, Stable stable, int64_t dim = -1, bool descending = false) {
  return retrograd::argsort(x, dim, descending, stable);
}
template <std::same_as<bool> Unbiased>
std::tuple<Tensor, Tensor> std_mean(const retrograd::Operand& x, Unbiased unbiased) {
  return retrograd::std_mean(x, {}, unbiased ? 1 : 0);
}
template <std::same_as<bool> Unbiased>
std::tuple<Tensor, Tensor> var_mean(const retrograd::Operand& x, Unbiased unbiased) {
  return retrograd::var_mean(x, {}, unbiased ? 1 : 0);
}

// With ATen's last argument, which asks for cuDNN: it changes nothing here.
inline Tensor batch_norm(const retrograd::Operand& input, const Tensor& weight, const Tensor& bias,
                         const Tensor& running_mean, const Tensor& running_var, bool training,
                         Scalar momentum, Scalar eps, bool /*cudnn_enabled*/) {
  return retrograd::batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps);
}
inline Tensor instance_norm(const retrograd::Operand& input, const Tensor& weight, const Tensor& bias,
                            const Tensor& running_mean, const Tensor& running_var, bool use_input_stats,
                            Scalar momentum, Scalar eps, bool /*cudnn_enabled*/) {
  return retrograd::instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum,
                                  eps);
}
inline Tensor layer_norm(const retrograd::Operand& input, const retrograd::Shape& normalized_shape,
                         const Tensor& weight, const Tensor& bias, Scalar eps, bool /*cudnn_enable*/) {
  return retrograd::layer_norm(input, normalized_shape, weight, bias, eps);
}
inline Tensor group_norm(const retrograd::Operand& input, int64_t num_groups, const Tensor& weight,
                         const Tensor& bias, Scalar eps, bool /*cudnn_enabled*/) {
  return retrograd::group_norm(input, num_groups, weight, bias, eps);
}

/// The arguments as one text.
template <class... Parts>
std::string str(const Parts&... parts) {
  return detail::joined(parts...);
}

}  // namespace torch
#pragma GCC visibility pop

#define AT_ASSERT(condition, ...) TORCH_CHECK(condition __VA_OPT__(, ) __VA_ARGS__)
#define AT_ASSERTM(condition, ...) TORCH_CHECK(condition __VA_OPT__(, ) __VA_ARGS__)
#define AT_ERROR(...) TORCH_CHECK(false __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_CHECK_INDEX(condition, ...) TORCH_CHECK(condition __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_CHECK_VALUE(condition, ...) TORCH_CHECK(condition __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_CHECK_TYPE(condition, ...) TORCH_CHECK(condition __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_CHECK_NOT_IMPLEMENTED(condition, ...) TORCH_CHECK(condition __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_WARN(...) \
  (void)std::fprintf(stderr, "Warning: %s\n", ::torch::detail::joined(__VA_ARGS__).c_str())
