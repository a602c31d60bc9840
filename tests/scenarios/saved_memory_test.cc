// Memory during a backward: the values that a record saved are freed when the next one runs, eager and traced, with
// hooks and without. Bytes are of tensor data, as requested. Not tested here: donated memory and plans as such.
#include <algorithm>

#include "hook_scenario.h"

namespace retrograd::scenario {
namespace {

constexpr int64_t kCount = 1'000'000, kBytes = 4 * kCount, kSmall = 4096;

int64_t live() { return memory::stats().live_bytes; }

/// Runs f eagerly, and traced twice: the second time from a plan that is there.
void in_all(const std::function<void(Mode&)>& f, int64_t captures = 1) {
  Mode eager(nullptr);
  f(eager);
  CompiledBackward compiled = compile_backward();
  for (int i = 0; i < 2; ++i) {
    INFO("traced run " << i);
    Mode mode(&compiled);
    f(mode);
  }
  CHECK(compiled.stats().captures == captures);
}

RefPtr<SavedTensorHooks> to_host(const std::function<void()>& at_unpack) {
  return saved_tensor_hooks(
      [](const Tensor& t) {
        const float* data = t.data_ptr<float>();
        return std::vector<float>(data, data + t.numel());
      },
      [at_unpack](const std::vector<float>& host) {
        at_unpack();
        const Tensor t = empty({static_cast<int64_t>(host.size())});
        std::copy(host.begin(), host.end(), t.data_ptr<float>());
        return t;
      });
}

}  // namespace

TEST_CASE("S114 an activation of 4 MB is gone when the next record runs") {
  in_all([](Mode& mode) {
    const int64_t before = live();
    const Tensor a = ones({kCount}).requires_grad_();
    Tensor loss;
    int64_t at_b = 0, at_c = 0;
    {
      const Tensor b = sin(a), c = cos(b), d = sin(c);
      b.register_hook([&](const Tensor&) { return at_b = live() - before, Tensor(); });
      c.register_hook([&](const Tensor&) { return at_c = live() - before, Tensor(); });
      loss = sum(d);
    }
    CHECK(live() - before <= 3 * kBytes + kSmall);  // a, b and c
    mode.backward(loss);
    CHECK(at_c <= 3 * kBytes + kSmall);  // a, b, and the gradient of c: c itself is freed
    CHECK(at_b <= 2 * kBytes + kSmall);  // a, and the gradient of b
    CHECK(at_b >= 2 * kBytes);
    CHECK(live() - before <= 2 * kBytes + kSmall);
    loss.reset();
    CHECK(live() - before <= 2 * kBytes + kSmall);
    CHECK(same_bits(a.grad().narrow(0, 0, 1), a.grad().narrow(0, kCount - 1, 1)));
  });
}

TEST_CASE("S114 a retained graph keeps its activations until a backward that does not retain") {
  in_all(
      [](Mode& mode) {
        const int64_t before = live();
        const Tensor a = ones({kCount}).requires_grad_();
        Tensor loss = sum(sin(cos(a)));
        mode.backward(loss, true);
        CHECK(live() - before >= 3 * kBytes);  // a, cos(a), the gradient
        mode.backward(loss);
        CHECK(live() - before <= 2 * kBytes + kSmall);
      },
      1);
}

TEST_CASE("S114 a dropped payload: the memory of what pack made goes when it was unpacked") {
  in_all([](Mode& mode) {
    const int64_t before = live();
    const Tensor a = ones({kCount}).requires_grad_();
    Tensor loss;
    int64_t at_b = 0;
    {
      SavedTensorHooksGuard guard([](const Tensor& t) { return t.to(kFloat16); },
                                  [](const Tensor& t) { return t.to(kFloat32); });
      const Tensor b = sin(a), c = cos(b);
      b.register_hook([&](const Tensor&) { return at_b = live() - before, Tensor(); });
      loss = sum(c);
    }
    CHECK(live() - before <= 2 * kBytes + kSmall);  // a, and two halves
    mode.backward(loss);
    CHECK(at_b <= 2 * kBytes + kBytes / 2 + kSmall);  // a, the gradient of b, and the half of a
    CHECK(live() - before <= 2 * kBytes + kSmall);
  });
}

TEST_CASE("hook 27 three layers: at each unpack only what this record needs is there") {
  in_all([](Mode& mode) {
    const int64_t before = live();
    const Tensor a = ones({kCount}).requires_grad_();
    std::vector<int64_t> at_unpack;
    Tensor loss;
    {
      SavedTensorHooksGuard guard(to_host([&] { at_unpack.push_back(live() - before); }));
      loss = sum(sin(cos(sin(a))));
    }
    CHECK(live() - before <= kBytes + kSmall);  // a
    mode.backward(loss);
    REQUIRE(at_unpack.size() == 3);
    for (int64_t bytes : at_unpack) CHECK(bytes <= 2 * kBytes + kSmall);  // a, and the present gradient
    CHECK(live() - before <= 2 * kBytes + kSmall);
  });
}

TEST_CASE("hook 27 the peak of a traced backward is not above that of the eager one") {
  int64_t peaks[2];
  CompiledBackward compiled = compile_backward();
  for (const bool traced : {false, true}) {
    Mode mode(traced ? &compiled : nullptr);
    for (int i = 0; i < 2; ++i) {
      const Tensor a = ones({kCount}).requires_grad_();
      Tensor loss;
      {
        SavedTensorHooksGuard guard(to_host([] {}));
        Tensor h = a;
        for (int layer = 0; layer < 3; ++layer) h = sin(cos(h) * h);
        loss = sum(h);
      }
      memory::reset_peak();
      mode.backward(loss);
      peaks[traced] = memory::stats().peak_bytes;
    }
  }
  CHECK(peaks[1] <= peaks[0]);
}

}  // namespace retrograd::scenario
