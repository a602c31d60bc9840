// Shared by tests of random numbers: moments, cells and chi-square of draws at a fixed seed, and the category of a
// refusal.
#pragma once

#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>

#include "retrograd/retrograd.h"
#include "tests/errors.h"

namespace retrograd::testing {

/// Of all elements of a tensor.
struct Moments {
  double mean = 0, variance = 0;
};

inline Moments moments(const Tensor& x) {
  Moments m;
  const std::vector<double> v = x.to_vector();
  const double n = static_cast<double>(v.size());
  for (double a : v) m.mean += a / n;
  for (double a : v) m.variance += (a - m.mean) * (a - m.mean) / n;
  return m;
}

// Pearson's statistic of counts against expected shares. With 2 to 24 cells a value below `cells + 5 sqrt(2
// cells)` is no surprise.
inline bool fits(const std::vector<double>& counts, const std::vector<double>& shares) {
  const double n = std::accumulate(counts.begin(), counts.end(), 0.0);
  double sum = 0;
  for (size_t i = 0; i < counts.size(); ++i)
    if (shares[i] > 0)
      sum += (counts[i] - n * shares[i]) * (counts[i] - n * shares[i]) / (n * shares[i]);
    else if (counts[i] > 0)
      return false;
  const double cells = static_cast<double>(counts.size());
  INFO("chi-square " << sum << " of " << cells << " cells");
  CHECK(sum < cells + 5 * std::sqrt(2 * cells));
  return sum < cells + 5 * std::sqrt(2 * cells);
}

inline std::vector<double> histogram(const Tensor& x, size_t cells, double from = 0, double width = 1) {
  std::vector<double> counts(cells);
  for (double v : x.to_vector()) {
    const double cell = std::floor((v - from) / width);
    REQUIRE((cell >= 0 && cell < static_cast<double>(cells)));
    ++counts[static_cast<size_t>(cell)];
  }
  return counts;
}

inline constexpr ScalarType kFloats[] = {kFloat64, kFloat32, kFloat16, kBFloat16};

}  // namespace retrograd::testing
