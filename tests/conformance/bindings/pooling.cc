// Pooling and interpolation.
#include "ops/pooling.h"
#include "ops/interpolate.h"

#include "tests/conformance/bindings/families.h"

namespace retrograd::conformance {
namespace {

// One number for all dims or a list of one for each, null for an absent one.
template <class T, class Number>
PerDim<T> per_dim(const Json& json) {
  const auto one = [](const Json& entry) { return entry.is_null() ? T() : T(entry.get<Number>()); };
  if (!json.is_array()) return json.is_null() ? PerDim<T>() : PerDim<T>(one(json));
  std::vector<T> values;
  for (const Json& entry : json) values.push_back(one(entry));
  return values;
}

Tensors results_of(const MaxPoolResult& pool, bool return_indices) {
  return return_indices ? Tensors{pool.values, pool.indices} : Tensors{pool.values};
}

template <auto F>
Tensors max_pool(Operand x, const IntList& kernel_size, const IntList& stride, const IntList& padding,
                 const IntList& dilation, bool ceil_mode, bool return_indices) {
  return results_of(F(x, kernel_size, stride, padding, dilation, ceil_mode), return_indices);
}

template <auto F>
Tensor adaptive(Operand x, const Json& output_size) {
  return F(x, per_dim<std::optional<int64_t>, int64_t>(output_size));
}

Tensors adaptive_max_pool2d_of(Operand x, const Json& output_size, bool return_indices) {
  return results_of(
      adaptive_max_pool2d_with_indices(x, per_dim<std::optional<int64_t>, int64_t>(output_size)),
      return_indices);
}

Tensor interpolate_of(Operand x, const Json& size, const Json& scale_factor, std::string_view mode,
                      std::optional<bool> align_corners) {
  return interpolate(x, {.size = per_dim<int64_t, int64_t>(size),
                         .scale_factor = per_dim<double, double>(scale_factor),
                         .mode = std::string(mode),
                         .align_corners = align_corners});
}

constexpr Binding kBindings[] = {
    {"max_pool1d", call<max_pool<max_pool1d_with_indices>>},
    {"max_pool2d", call<max_pool<max_pool2d_with_indices>>},
    {"max_pool3d", call<max_pool<max_pool3d_with_indices>>},
    {"avg_pool1d", call<avg_pool1d>},
    {"avg_pool2d", call<avg_pool2d>},
    {"avg_pool3d", call<avg_pool3d>},
    {"adaptive_max_pool2d", call<adaptive_max_pool2d_of>},
    {"adaptive_avg_pool1d", call<adaptive<adaptive_avg_pool1d>>},
    {"adaptive_avg_pool2d", call<adaptive<adaptive_avg_pool2d>>},
    {"adaptive_avg_pool3d", call<adaptive<adaptive_avg_pool3d>>},
    {"interpolate", call<interpolate_of>},
};

}  // namespace

BindingList pooling_bindings() { return kBindings; }

}  // namespace retrograd::conformance
