// Stock saved-tensor hooks: int8 and copies on the CPU. What is restored, what is unchanged, which memory is held.
//
// Not tested here: half, fp8 and files (stock_test.cc), recomputation (recompute_test.cc), the profile over
// many layers (tests/tracer/memory_profile_test.cc).
#include <catch2/catch.hpp>
#include <cfloat>
#include <cmath>
#include <cstring>

#include "retrograd/retrograd.h"
#include "tests/hooks/pairs.h"

namespace rg = retrograd;
using rg::Tensor;
using rg::Tensors;
using rg::testing::is_left_as_it_is;
using rg::testing::same_bits;
using rg::testing::shifted_wave;
using rg::testing::there_and_back;

namespace {

/// Largest |a - b| over elements [begin, end).
double difference(const Tensor& a, const Tensor& b, size_t begin = 0, size_t end = ~size_t{0}) {
  const std::vector<double> x = a.to_vector(), y = b.to_vector();
  REQUIRE(x.size() == y.size());
  double largest = 0;
  for (size_t i = begin; i < std::min(end, x.size()); ++i) {
    REQUIRE_FALSE(std::isnan(x[i] - y[i]));
    largest = std::max(largest, std::fabs(x[i] - y[i]));
  }
  return largest;
}

int64_t live() { return rg::memory::stats().live_bytes; }

}  // namespace

TEST_CASE("int8 gives back dtype and shape, each element within half a step of its block") {
  const auto hooks = rg::save_as_int8();
  for (rg::ScalarType dtype : {rg::kFloat64, rg::kFloat32, rg::kFloat16, rg::kBFloat16}) {
    const Tensor x = shifted_wave(1000, 3, dtype).view({20, 50});
    const Tensor y = there_and_back(*hooks, x);
    CHECK(y.dtype() == dtype);
    CHECK(y.sizes() == x.sizes());
    const double rounding = dtype == rg::kBFloat16 ? 0.02 : dtype == rg::kFloat16 ? 0.003 : 1e-6;
    CHECK(difference(x, y) <= 3.45 / 254 * 1.0001 + rounding);
    CHECK(difference(x, y) > 0);
  }
}

TEST_CASE("int8: each block has a scale of its own, and its largest element is hit") {
  const auto hooks = rg::save_as_int8();
  const Tensor x = shifted_wave(3 * rg::kInt8Block + 5);
  x.narrow(0, 0, rg::kInt8Block).mul_(1e-20);
  x.narrow(0, rg::kInt8Block, rg::kInt8Block).mul_(1e20);
  const Tensor y = there_and_back(*hooks, x);
  const size_t block = rg::kInt8Block;
  CHECK(difference(x, y, 0, block) <= 1.15e-20 / 250);
  CHECK(difference(x, y, block, 2 * block) <= 1.15e20 / 250);
  CHECK(difference(x, y, 2 * block, 3 * block) <= 1.15 / 250);
  CHECK(difference(x, y, 3 * block) <= 1.15 / 250);  // the block that is not full
  CHECK(there_and_back(*hooks, rg::full({300}, -5.0)).to_vector()[299] == Approx(-5).epsilon(1e-6));
  CHECK(there_and_back(*hooks, rg::zeros({300})).to_vector() == std::vector<double>(300, 0));
  CHECK(difference(rg::full({300}, 1e-44), there_and_back(*hooks, rg::full({300}, 1e-44))) <= FLT_MIN);
}

TEST_CASE("int8 keeps a byte an element and a scale a block, whatever the layout") {
  const auto hooks = rg::save_as_int8();
  const Tensor x = shifted_wave(20 * rg::kInt8Block).view({rg::kInt8Block, 20}).t();
  const int64_t before = live();
  const std::any payload = hooks->pack(x);
  CHECK(live() - before == x.numel() + 20 * 4);
  CHECK(difference(x, hooks->unpack(payload)) <= 1.15 / 250);
}

TEST_CASE("int8 and fp8 in float64 reach beyond float32") {
  for (const auto& hooks : {rg::save_as_int8(), rg::save_as_fp8()})
    for (const double size : {1e300, 1e-300})
      CHECK(there_and_back(*hooks, rg::full({300}, size, {rg::kFloat64})).to_vector()[0] ==
            Approx(size).epsilon(1e-2));
}

TEST_CASE("int8 leaves what it cannot serve: small, kept, expanded, integers") {
  const Tensor weight = shifted_wave(1024);
  const auto hooks = rg::save_as_int8({weight});
  CHECK(is_left_as_it_is(*hooks, shifted_wave(rg::kSmallestPacked - 1)));
  CHECK(is_left_as_it_is(*hooks, rg::zeros({1000}, {rg::kInt64})));
  CHECK(is_left_as_it_is(*hooks, shifted_wave(1000).to(rg::kFloat8_e4m3fn)));
  CHECK(is_left_as_it_is(*hooks, weight.view({32, 32}).t()));
  CHECK(is_left_as_it_is(*hooks, rg::expand(shifted_wave(4), {1000, 4})));
  CHECK_FALSE(is_left_as_it_is(*hooks, shifted_wave(rg::kSmallestPacked)));
}

TEST_CASE("save_on_cpu gives back bits and strides of every layout, in memory of its own") {
  const Tensor base = shifted_wave(360).view({3, 10, 12});
  const Tensors layouts = {base,
                           base.transpose(0, 2),
                           rg::permute(base, {1, 2, 0}),
                           base.narrow(0, 1, 2),
                           rg::expand(shifted_wave(12), {7, 12}),
                           rg::expand(shifted_wave(36).view({3, 1, 12}).transpose(0, 2), {12, 5, 3}),
                           shifted_wave(1).view({}),
                           rg::zeros({0, 4}),
                           rg::zeros({3, 0, 2}).transpose(0, 2),
                           rg::arange(0, 50),
                           shifted_wave(9, 1, rg::kFloat64),
                           shifted_wave(8).to(rg::kBool)};
  for (const bool pinned : {false, true}) {
    const auto hooks = rg::save_on_cpu(pinned);
    for (const Tensor& x : layouts) {
      INFO(rg::describe(x) << (pinned ? ", pinned" : ""));
      const std::any payload = hooks->pack(x);
      const Tensor y = hooks->unpack(payload), again = hooks->unpack(payload);
      CHECK(same_bits(x, y));
      CHECK(same_bits(x, again));
      if (x.numel() > 0) CHECK(y.strides() == x.strides());
      CHECK_FALSE(y.impl().storage() == x.impl().storage());
    }
  }
}

TEST_CASE("save_on_cpu closes gaps of a view and keeps an expanded tensor unexpanded") {
  const auto hooks = rg::save_on_cpu();
  const Tensor base = shifted_wave(400).view({20, 20});
  const Tensor window = base.narrow(1, 3, 4).t(), diagonal = rg::diagonal(base),
               rows = rg::expand(shifted_wave(20), {50, 20});
  const int64_t before = live();
  const std::any a = hooks->pack(window), b = hooks->pack(diagonal), c = hooks->pack(rows);
  CHECK(live() - before == 4 * (80 + 20 + 20));
  CHECK(same_bits(hooks->unpack(a), window));
  CHECK(same_bits(hooks->unpack(b), diagonal));
  CHECK(same_bits(hooks->unpack(c), rows));
  // Windows that overlap are written out.
  const Tensor windows = rg::unfold(shifted_wave(10), 0, 4, 1);
  CHECK(same_bits(there_and_back(*hooks, windows), windows));
}

TEST_CASE("save_on_cpu: a later write does not reach what was saved; kept tensors stay as they are") {
  const Tensor weight = shifted_wave(64).view({8, 8});
  const auto hooks = rg::save_on_cpu(false, {weight});
  CHECK(is_left_as_it_is(*hooks, weight.t()));
  for (const bool traced : {false, true}) {
    const Tensor a = shifted_wave(8).requires_grad_(), b = a.clone();
    Tensor loss;
    {
      rg::SavedTensorHooksGuard guard(hooks);
      loss = rg::sum(b * b);
    }
    rg::NoGradGuard no_grad;
    b.zero_();
    if (traced)
      rg::compile_backward()(loss);
    else
      loss.backward();
    CHECK(same_bits(a.grad(), a.detach() * 2.0));
  }
}

TEST_CASE("gradients under the pairs: exact through copies, close through int8, eager and traced") {
  const Tensor x0 = shifted_wave(512).view({16, 32}),
               w = (shifted_wave(1024, 0.2).view({32, 32})).requires_grad_();
  const auto gradient = [&](const rg::RefPtr<rg::SavedTensorHooks>& hooks, bool traced) {
    const Tensor x = x0.clone().requires_grad_();
    Tensor loss;
    {
      rg::SavedTensorHooksGuard guard(hooks);
      loss = rg::sum(rg::tanh(rg::mm(x.t(), rg::mm(x, w.t())) * 0.1) * rg::mm(x.t(), x));
    }
    if (traced)
      rg::compile_backward()(loss);
    else
      loss.backward();
    return x.grad();
  };
  const auto plain =
      rg::saved_tensor_hooks([](const Tensor& t) { return t; }, [](const Tensor& t) { return t; });
  const Tensor want = gradient(plain, false);
  for (const bool traced : {false, true}) {
    CHECK(same_bits(gradient(rg::save_on_cpu(), traced), want));
    CHECK(same_bits(gradient(rg::save_on_cpu(true, {w}), traced), want));
    const Tensor close = gradient(rg::save_as_int8({w}), traced);
    CHECK(difference(want, close) < 0.05 * difference(want, rg::zeros({16, 32})));
    CHECK(difference(want, close) > 0);
  }
}
