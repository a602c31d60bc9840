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

Tensors max_pool2d_of(Operand x, const IntList& kernel_size, const IntList& stride, const IntList& padding,
                      const IntList& dilation, bool ceil_mode, bool return_indices) {
  const MaxPoolResult pool = max_pool2d_with_indices(x, kernel_size, stride, padding, dilation, ceil_mode);
  return return_indices ? Tensors{pool.values, pool.indices} : Tensors{pool.values};
}

Tensor adaptive_avg_pool2d_of(Operand x, const Json& output_size) {
  return adaptive_avg_pool2d(x, per_dim<std::optional<int64_t>, int64_t>(output_size));
}

Tensor interpolate_of(Operand x, const Json& size, const Json& scale_factor, std::string_view mode,
                      std::optional<bool> align_corners) {
  return interpolate(x, {.size = per_dim<int64_t, int64_t>(size),
                         .scale_factor = per_dim<double, double>(scale_factor),
                         .mode = mode,
                         .align_corners = align_corners});
}

constexpr Binding kBindings[] = {
    {"max_pool2d", call<max_pool2d_of>},
    {"avg_pool2d", call<avg_pool2d>},
    {"adaptive_avg_pool2d", call<adaptive_avg_pool2d_of>},
    {"interpolate", call<interpolate_of>},
};

}  // namespace

BindingList pooling_bindings() { return kBindings; }

}  // namespace retrograd::conformance
