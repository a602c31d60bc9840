// Shared by tests of linear algebra: matrices far from singular, distances, layouts of the same values, and the error
// of a call.
#pragma once

#include <catch2/catch.hpp>
#include <cmath>

#include "ops/linalg.h"
#include "ops/matmul.h"
#include "ops/views.h"
#include "retrograd/retrograd.h"
#include "tests/ops/gradcheck.h"
#include "tests/errors.h"

namespace retrograd::testing {

inline double largest(const Tensor& x) {
  double m = 0;
  for (double v : x.to_vector()) m = std::isnan(v) ? v : std::max(m, std::abs(v));
  return m;
}

inline double distance(const Tensor& a, const Tensor& b) {
  REQUIRE(a.sizes() == b.sizes());
  return largest(sub(a, b));
}

inline Tensor turned(const Tensor& x) { return transpose(x, -2, -1); }

// Matrices (..., n, n) that are far from singular.
inline Tensor regular(IntArray batch, int64_t n, ScalarType dtype = kFloat64, int seed = 3) {
  batch.insert(batch.end(), {n, n});
  const Tensor noise = input(batch, -1, 1, seed).detach();
  return to(noise + eye(n, n, {kFloat64}) * (1.0 + std::sqrt(static_cast<double>(n))), dtype);
}

inline Tensor positive(IntArray batch, int64_t n, ScalarType dtype = kFloat64) {
  const Tensor x = regular(batch, n, dtype);
  return matmul(x, turned(x)) / (1.0 + static_cast<double>(n));
}

// The same values in other memory: turned, or every other element of a larger tensor.
inline std::vector<Tensor> layouts(const Tensor& x) {
  const Tensor wide = zeros({x.size(0), x.size(1), 2 * x.size(2)}, {x.dtype()});
  const Tensor sparse = slice(wide, 2, 1, std::nullopt, 2);
  sparse.copy_(x);
  return {x, turned(turned(x).contiguous()), sparse};
}

inline double tolerance(ScalarType dtype) { return dtype == kFloat64 ? 1e-12 : 2e-4; }

inline constexpr ScalarType kDtypes[] = {kFloat64, kFloat32};

/// The gradient of det.
inline Tensor det_gradient(const Tensor& x) {
  const Tensor leaf = x.clone().requires_grad_();
  return autograd::grad({sum(det(leaf))}, {leaf})[0];
}

}  // namespace retrograd::testing
