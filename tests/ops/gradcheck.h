// Derivatives against differences, for tests of single ops: autograd/gradcheck.h with Catch's checks; and inputs and
// distances for such tests. tests/ops/derivatives has the table of checks for every differentiable op.
//
//   gradcheck([](const Tensors& x) { return tanh(x[0]); }, {input({2, 3})});
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "autograd/gradcheck.h"
#include "ops/arithmetic.h"
#include "ops/creation.h"
#include "ops/reduce.h"
#include "ops/shape_ops.h"

namespace retrograd::testing {

/// Numbers in [low, high] without pattern, the same in every run; a float64 leaf that requires a gradient.
inline Tensor input(const Shape& shape, double low = -1.5, double high = 1.5, int seed = 1) {
  std::vector<double> values(static_cast<size_t>(shape.numel().value()));
  uint64_t state = 0x9E3779B97F4A7C15u * static_cast<uint64_t>(seed + 1);
  for (double& v : values) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    v = low + (high - low) * static_cast<double>(state >> 11) / 9007199254740992.0;
  }
  return tensor(values, shape, {kFloat64, kCPU, true});
}

/// The largest distance between two elements in one place; infinite where one of them is a nan.
inline double worst_difference(const Tensor& got, const Tensor& want) {
  REQUIRE(got.sizes() == want.sizes());
  const std::vector<double> a = got.to_vector(), b = want.to_vector();
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double distance = a[i] == b[i] ? 0 : std::abs(a[i] - b[i]);
    worst = std::isnan(distance) ? std::numeric_limits<double>::infinity() : std::max(worst, distance);
  }
  return worst;
}

using Function = std::function<Tensor(const Tensors&)>;

/// Both orders, reverse and forward mode: autograd::gradcheck and, unless second = false, gradgradcheck.
inline void gradcheck(const Function& f, const Tensors& inputs, bool second = true) {
  const auto list = [&](const Tensors& x) { return Tensors{f(x)}; };
  REQUIRE(f(inputs).requires_grad());
  const auto passes = [](const autograd::GradcheckResult& result) {
    INFO(result.failure);
    CHECK(result.passed);
  };
  autograd::GradcheckOptions options;
  options.raise = false;
  passes(autograd::gradcheck(list, inputs, options));
  if (!second) return;
  options = autograd::kGradgradcheckOptions;
  options.raise = false;
  passes(autograd::gradgradcheck(list, inputs, {}, options));
}

}  // namespace retrograd::testing
