// Parameters of 16 bits: PyTorch's numbers, state of the parameter's dtype, clipping, and a recorded step.
//
// Expected are parameters after seven steps of PyTorch 2.15's optimizers with fused=True, which compute in float32 and
// round each new value once; element i begins at cos(0.9 i), its gradient in step t is sin(1.3 t + 0.7 i) + 0.2.
// Without fused=True PyTorch rounds after each operation of an update, and the last bits differ.
#include <catch2/catch.hpp>

#include <cmath>

#include "retrograd/retrograd.h"
#include "tests/optimizer_state.h"

namespace rg = retrograd;
namespace optim = retrograd::optim;
using rg::Tensor;

namespace {

using Vector = std::vector<double>;

Tensor parameter(rg::ScalarType dtype, int64_t n = 8) {
  Vector values;
  for (int64_t i = 0; i < n; ++i) values.push_back(std::cos(0.9 * static_cast<double>(i)));
  return rg::tensor(values, {n}, {rg::kFloat64}).to(dtype).requires_grad_();
}

void set_gradient(const Tensor& p, int t) {
  Vector values;
  for (int64_t i = 0; i < p.numel(); ++i)
    values.push_back(std::sin(1.3 * t + 0.7 * static_cast<double>(i)) + 0.2);
  p.set_grad(rg::tensor(values, p.sizes(), {rg::kFloat64}).to(p.dtype()));
}

template <class Optimizer>
void check(const typename Optimizer::Options& options, const Vector& bfloat16, const Vector& float16) {
  for (rg::ScalarType dtype : {rg::kBFloat16, rg::kFloat16}) {
    const Tensor p = parameter(dtype);
    Optimizer optimizer(rg::Tensors{p}, options);
    for (int t = 1; t <= 7; ++t) {
      set_gradient(p, t);
      optimizer.step();
    }
    CHECK(p.to_vector() == (dtype == rg::kBFloat16 ? bfloat16 : float16));
    for (const auto& [name, value] : rg::state_of(optimizer))
      if (!name.ends_with(".step")) CHECK(value.dtype() == dtype);
  }
}

}  // namespace

TEST_CASE("AdamW of bfloat16 and float16 parameters") {
  check<optim::AdamW>(
      {.lr = 0.05},
      {0.80859375, 0.470703125, -0.3046875, -0.81640625, -0.8203125, -0.1787109375, 0.58203125, 0.796875},
      {0.80859375, 0.47314453125, -0.305908203125, -0.8173828125, -0.81494140625, -0.17822265625,
       0.5869140625, 0.794921875});
  check<optim::AdamW>(
      {.lr = 0.05, .weight_decay = 0.3, .amsgrad = true, .maximize = true},
      {1.0703125, 0.69140625, -0.12890625, -0.88671875, -0.87890625, -0.2177734375, 0.61328125, 1.0859375},
      {1.0771484375, 0.69775390625, -0.1287841796875, -0.8896484375, -0.8779296875, -0.217041015625,
       0.6171875, 1.091796875});
}

TEST_CASE("SGD of bfloat16 and float16 parameters") {
  check<optim::SGD>(
      {.lr = 0.1},
      {0.71484375, 0.421875, -0.31640625, -0.90234375, -0.87109375, -0.2431640625, 0.494140625, 0.7578125},
      {0.716796875, 0.420654296875, -0.316650390625, -0.90576171875, -0.87548828125, -0.2425537109375,
       0.49951171875, 0.7578125});
  check<optim::SGD>({.lr = 0.1, .momentum = 0.8, .weight_decay = 0.05, .nesterov = true},
                    {0.059814453125, -0.056884765625, -0.5078125, -0.86328125, -0.79296875, -0.31640625,
                     0.1572265625, 0.189453125},
                    {0.061065673828125, -0.0567626953125, -0.509765625, -0.86962890625, -0.79296875,
                     -0.31689453125, 0.157470703125, 0.192138671875});
  check<optim::SGD>({.lr = 0.1, .momentum = 0.9, .dampening = 0.3},
                    {0.1884765625, -0.01153564453125, -0.55078125, -0.9296875, -0.78125, -0.1767578125,
                     0.40234375, 0.451171875},
                    {0.1884765625, -0.01160430908203125, -0.55029296875, -0.93115234375, -0.7822265625,
                     -0.1748046875, 0.40966796875, 0.451416015625});
}

TEST_CASE("many elements, and several dtypes in one optimizer, have the bits of a few alone") {
  for (rg::ScalarType dtype : {rg::kBFloat16, rg::kFloat16}) {
    const Tensor all = parameter(dtype, 70'001), few = parameter(dtype, 1000),
                 other = parameter(rg::kFloat32, 5);
    optim::AdamW together(rg::Tensors{other, all}, {.lr = 0.05, .amsgrad = true}),
        alone(rg::Tensors{few}, {.lr = 0.05, .amsgrad = true});
    for (int t = 1; t <= 3; ++t) {
      for (const Tensor& p : {all, few, other}) set_gradient(p, t);
      together.step();
      alone.step();
    }
    const Vector a = all.to_vector();
    CHECK(Vector(a.begin(), a.begin() + 1000) == few.to_vector());
  }
}

TEST_CASE("gradients of 16 bits are clipped, recorded as eagerly") {
  for (rg::ScalarType dtype : {rg::kBFloat16, rg::kFloat16})
    for (double norm_type : {2.0, 1.0, static_cast<double>(INFINITY)}) {
      const Tensor plain = parameter(dtype, 3000), recorded = parameter(dtype, 3000);
      optim::SGD plain_optimizer(rg::Tensors{plain}, {.lr = 0.5}),
          optimizer(rg::Tensors{recorded}, {.lr = 0.5});
      const auto body = [&](const Tensor& p, optim::SGD& o, const Tensor& x) {
        o.zero_grad();
        rg::sum(p * p * x).backward();
        const Tensor norm = optim::clip_grad_norm_({p}, 0.7, norm_type).tensor();
        o.step();
        return norm;
      };
      auto step = rg::compile_step([&](const Tensor& x) { return body(recorded, optimizer, x); });
      for (int i = 1; i < 4; ++i) {
        const Tensor x = rg::full({3000}, 0.3 * i, {dtype});
        const Tensor eager = body(plain, plain_optimizer, x), found = step(x);
        CHECK(found.item<double>() == eager.item<double>());
        CHECK(plain.to_vector() == recorded.to_vector());
      }
    }
  // The norm is computed in float64.
  const Tensor p = parameter(rg::kBFloat16, 5);
  p.set_grad(rg::full({5}, 2.0, {rg::kBFloat16}));
  CHECK(optim::clip_grad_norm_({p}, 1.0) == std::sqrt(20.0));
  CHECK(p.grad().to_vector()[0] == Approx(2 / std::sqrt(20.0)).epsilon(0.004));
}
