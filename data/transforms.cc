// See data/transforms.h.
#include "data/transforms.h"

#include "ops/arithmetic.h"
#include "ops/creation.h"

namespace retrograd::inline v0::data::transforms::detail {

Tensor per_channel(const std::vector<double>& values) {
  return tensor(values, {static_cast<int64_t>(values.size()), 1, 1}, {kFloat32});
}

Tensor normalized(const Tensor& input, const Tensor& mean, const Tensor& stddev) {
  return (input - mean) / stddev;
}

}  // namespace retrograd::inline v0::data::transforms::detail
