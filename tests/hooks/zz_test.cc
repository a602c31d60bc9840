#include <catch2/catch.hpp>
#include "retrograd/retrograd.h"
#include "engine/region_log.h"
#include "tests/hooks/pairs.h"
namespace rg = retrograd; using rg::Tensor;
using rg::testing::same_bits; using rg::testing::shifted_wave;
TEST_CASE("a") {
  Tensor want;
  for (int k = 0; k < 12; ++k) {
    const Tensor x = shifted_wave(12, 0.9, rg::kFloat64).view({6,2}).requires_grad_();
    const auto f = [&] { 
      Tensor m = rg::matmul(x, rg::transpose(x, -1, -2));
      if (k / 3 == 3) m = rg::clone(m);
      Tensor s = k / 3 == 1 ? m : rg::tanh(m);
      Tensor r = s + rg::eye(6, {}, {rg::kFloat64}) * 7.5;
      if (k / 3 == 2) return rg::sum(rg::inverse(r));
      return rg::logdet(r); };
    Tensor y;
    if (k % 3 == 0) y = f();
    if (k % 3 == 1) y = rg::checkpoint(f);
    if (k % 3 == 2) { rg::RecomputeScope s(rg::policies::recompute_all()); y = f(); }
    y.backward();
    if (k % 3 == 0) want = x.grad();
    CAPTURE(k);
    CHECK(same_bits(x.grad(), want));
  }
}
