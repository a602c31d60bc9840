// Shared by the tests of stock pairs: tensors to save, and their round trip through a pair.
#pragma once

#include <cmath>

#include "retrograd/retrograd.h"
#include "tests/same_bits.h"

namespace retrograd::testing {

/// The result of unpack(pack(x)).
inline Tensor there_and_back(SavedTensorHooks& hooks, const Tensor& x) { return hooks.unpack(hooks.pack(x)); }

inline bool is_left_as_it_is(SavedTensorHooks& hooks, const Tensor& x) {
  const std::any payload = hooks.pack(x);
  const Tensor* tensor = std::any_cast<Tensor>(&payload);
  return tensor && tensor->raw_data() == x.raw_data();
}

/// n values of a sine of this amplitude, around `middle`.
inline Tensor wave(int64_t n, double scale = 1, ScalarType dtype = kFloat32, double middle = 0) {
  std::vector<double> values(static_cast<size_t>(n));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = scale * std::sin(0.37 * static_cast<double>(i) + 0.1) + middle;
  return tensor(values, {n}, {dtype});
}

/// The same, concatenated with 0, so that no block of it is symmetric.
inline Tensor shifted_wave(int64_t n, double scale = 1, ScalarType dtype = kFloat32) {
  return wave(n, scale, dtype, scale / 7);
}

}  // namespace retrograd::testing
