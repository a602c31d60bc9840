// Numbers for tests of functions of functions, and how results are compared.
#pragma once

#include <catch2/catch.hpp>

#include "retrograd/retrograd.h"

namespace retrograd::testing {

/// float64, between -1 and 1, other ones for another seed.
inline Tensor numbers(const Shape& shape, int seed = 1) {
  std::vector<double> values(static_cast<size_t>(shape.numel().value()));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<double>((i * 7919 + static_cast<size_t>(seed) * 104729 + 13) % 1009) / 504.5 - 1;
  return tensor(values, shape, {kFloat64});
}

inline void check_close(const Tensor& got, const Tensor& want, double tolerance = 1e-12) {
  REQUIRE(got.impl().type() == want.impl().type());
  const std::vector<double> a = got.detach().to_vector(), b = want.detach().to_vector();
  for (size_t i = 0; i < a.size(); ++i) {
    INFO("element " << i);
    CHECK(a[i] == Approx(b[i]).epsilon(tolerance).margin(tolerance));
  }
}

}  // namespace retrograd::testing
