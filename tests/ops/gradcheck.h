// Derivatives against differences: what every differentiable op must pass.
//
//   gradcheck([](const Tensors& x) { return tanh(x[0]); }, {input({2, 3})});
//
// In float64, for a scalar s = sum(f(x) * w) with a fixed direction w: the gradient of s against central differences of every element; the
// inner product of forward mode with w against that of reverse mode with the tangents; and, unless second = false, the same check of the
// gradient itself. Fails with the input, the element and both numbers.
#pragma once

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>

#include "engine/autograd.h"
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

using Function = std::function<Tensor(const Tensors&)>;

namespace detail {

inline Tensor direction(const Tensor& like, int seed) {
  Tensor w = input(like.impl().shape(), 0.5, 1.5, seed);
  return w.requires_grad_(false);
}

inline Tensors leaves(const Tensors& inputs) {
  Tensors fresh;
  for (const Tensor& x : inputs)
    fresh.push_back(is_floating(x.dtype())
                        ? tensor(x.to_vector(), x.impl().shape(), {x.dtype(), kCPU, x.requires_grad()})
                        : x);
  return fresh;
}

inline double value_of(const Function& f, const Tensors& inputs, const Tensor& w) {
  NoGradGuard no_grad;
  return sum(mul(f(inputs), w)).item<double>();
}

inline void compare_with_differences(const Function& f, const Tensors& inputs, const Tensors& grads,
                                     const Tensor& w) {
  constexpr double eps = 1e-6;
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (!inputs[k].requires_grad()) continue;
    const std::vector<double> got = grads[k].defined()
                                        ? grads[k].to_vector()
                                        : std::vector<double>(static_cast<size_t>(inputs[k].numel()));
    for (size_t i = 0; i < got.size(); ++i) {
      Tensors moved = leaves(inputs);
      double* x = moved[k].data_ptr<double>() + i;
      const double at = *x;
      *x = at + eps;
      const double above = value_of(f, moved, w);
      moved = leaves(inputs);
      moved[k].data_ptr<double>()[i] = at - eps;
      const double want = (above - value_of(f, moved, w)) / (2 * eps);
      INFO("input " << k << ", element " << i << ": differences " << want << ", gradient " << got[i]);
      CHECK(std::abs(got[i] - want) <= 1e-6 + 1e-4 * std::abs(want));
    }
  }
}

inline void compare_modes(const Function& f, const Tensors& inputs, const Tensors& grads, const Tensor& w) {
  Tensors tangents;
  double reverse = 0;
  for (size_t k = 0; k < inputs.size(); ++k) {
    tangents.push_back(inputs[k].requires_grad() ? direction(inputs[k], 50 + static_cast<int>(k)) : Tensor());
    if (tangents[k].defined() && grads[k].defined())
      reverse += sum(mul(grads[k].detach(), tangents[k])).item<double>();
  }
  const autograd::JvpResult result =
      autograd::jvp([&](const Tensors& x) { return Tensors{f(x)}; }, inputs, tangents);
  const double forward =
      result.tangents[0].defined() ? sum(mul(result.tangents[0].detach(), w)).item<double>() : 0;
  INFO("forward mode " << forward << ", reverse mode " << reverse);
  CHECK(std::abs(forward - reverse) <= 1e-9 + 1e-9 * std::abs(reverse));
}

}  // namespace detail

inline void gradcheck(const Function& f, const Tensors& inputs, bool second = true) {
  const Tensors x = detail::leaves(inputs);
  Tensors wanted;
  for (const Tensor& t : x)
    if (t.requires_grad()) wanted.push_back(t);
  const Tensor y = f(x);
  REQUIRE(y.requires_grad());
  const Tensor w = detail::direction(y, 7);
  const Tensors found = autograd::grad({y}, wanted, {w}, true, false, true);
  Tensors grads;
  size_t next = 0;
  for (const Tensor& t : x) grads.push_back(t.requires_grad() ? found[next++] : Tensor());
  detail::compare_with_differences(f, inputs, grads, w);
  detail::compare_modes(f, detail::leaves(inputs), grads, w);
  if (!second) return;
  // <gradient, v>, as a function of the inputs and of the cotangent.
  Tensors more = inputs;
  more.push_back(detail::direction(y, 8).requires_grad_());
  gradcheck(
      [&](const Tensors& in) {
        EnableGradGuard records;
        Tensors roots(in.begin(), in.end() - 1), asked;
        for (Tensor& t : roots)
          if (t.requires_grad()) asked.push_back(t);
        const Tensors g = autograd::grad({f(roots)}, asked, {in.back()}, true, true, true);
        Tensor total = mul(sum(in.back()), 0.0);
        for (size_t k = 0; k < g.size(); ++k)
          if (g[k].defined())
            total = add(total, sum(mul(g[k], detail::direction(g[k], 20 + static_cast<int>(k)))));
        return total;
      },
      more, false);
}

}  // namespace retrograd::testing
