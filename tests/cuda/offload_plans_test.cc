// Backwards of tensors on a device whose saved values are in pinned memory: bits, peaks, order of copies and launches,
// reuse of pinned memory. The device is the host's memory (tests/cuda/device_on_host.h). The copies by themselves:
// offload_test.cc.
#include <algorithm>
#include <sstream>

#include "tests/cuda/offload_fixture.h"

using namespace retrograd;
using namespace retrograd::testing;

TEST_CASE_METHOD(OffloadFixture, "pinned memory is used again, step after step") {
  const auto hooks = save_on_cpu(true, {}, {.nodes = 2});
  const Tensor w = full({kWidth, kWidth}, 0.25, there).requires_grad_(),
               x = wave(kRows * kWidth).view({kRows, kWidth}).to(kCUDA);
  CompiledBackward backward = compile_backward();
  int made = 0;
  for (int step = 0; step < 4; ++step) {
    w.set_grad({});
    SavedTensorHooksGuard guard(hooks);
    backward(sum(retrograd::tanh(mm(retrograd::tanh(mm(x, w)), w))));
    if (step == 1) made = driver.pinned_made;
  }
  CHECK(driver.pinned_made == made);
  CHECK(backward.stats().captures == 1);
}

namespace {

// A chain of layers, whose inputs and results are saved.
struct Chain {
  static constexpr int kLayers = 6;
  Tensors weights;
  Tensor x = wave(kRows * kWidth).view({kRows, kWidth}).to(kCUDA);

  Chain() {
    for (int i = 0; i < kLayers; ++i)
      weights.push_back(
          (wave(kWidth * kWidth, 0.3).view({kWidth, kWidth}) + 0.01 * i).to(kCUDA).requires_grad_());
  }
  Tensor loss() const { return loss(x); }
  Tensor loss(const Tensor& input) const {
    Tensor h = input;
    for (const Tensor& w : weights) h = retrograd::tanh(mm(h, w));
    return sum(h * h);
  }
  Tensors take_grads() const {
    Tensors grads;
    for (const Tensor& w : weights) {
      grads.push_back(w.grad());
      w.set_grad({});
    }
    return grads;
  }
};

}  // namespace

TEST_CASE_METHOD(OffloadFixture,
                 "backwards with values begun ahead: the same bits, and no higher peak than the room") {
  const Chain chain;
  chain.loss().backward();
  const Tensors want = chain.take_grads();
  const auto peak_of = [&](PrefetchOptions options, const std::function<void(const Tensor&)>& backward) {
    Tensor loss;
    {
      SavedTensorHooksGuard guard(save_on_cpu(true, chain.weights, options));
      loss = chain.loss();
    }
    reset_offload_stats();
    gpu.memory().reset_peak();
    backward(loss);
    const int64_t peak = gpu.memory().stats().peak_bytes;
    const Tensors found = chain.take_grads();
    for (size_t i = 0; i < want.size(); ++i) CHECK(same_bits(found[i].cpu(), want[i].cpu()));
    CHECK(offload_stats().in_flight == 0);
    CHECK(offload_stats().bytes_back >= 2 * Chain::kLayers * kBytes - kBytes);
    return peak;
  };
  CompiledBackward compiled = compile_backward();
  const auto traced = [&](const Tensor& loss) { compiled(loss); };
  const int64_t eager = peak_of({}, [](const Tensor& loss) { loss.backward(); });
  CHECK(offload_stats().early == 0);
  const int64_t unmoved = peak_of({.nodes = 0}, traced);
  CHECK(unmoved <= eager);
  CHECK(offload_stats().early == 0);
  for (const int nodes : {1, 4, 64}) {
    INFO(nodes << " nodes ahead");
    CHECK(peak_of({.nodes = nodes}, traced) == unmoved);
    CHECK(offload_stats().early > 0);
    for (const int64_t room : {kBytes, 2 * kBytes, 3 * kBytes + 100, 100 * kBytes}) {
      INFO("room " << room);
      CHECK(peak_of({.nodes = nodes, .room_bytes = room}, traced) <= unmoved + room);
      CHECK(offload_stats().most_bytes_in_flight > 0);
    }
  }
  // With 64 nodes and room for everything, all is begun at the beginning.
  const OffloadStats all = offload_stats();
  CHECK(all.early == all.most_in_flight);
  CHECK(compiled.stats().captures == 1);
}

TEST_CASE_METHOD(OffloadFixture,
                 "compiled functions and steps with values begun ahead: the same bits and peaks") {
  const Chain chain;
  chain.loss().backward();
  const Tensors want = chain.take_grads();
  const auto step = [&](const Tensor& x) {
    for (const Tensor& w : chain.weights) w.set_grad({});
    const Tensor loss = chain.loss(x);
    loss.backward();
    return loss;
  };
  const auto peak_of = [&](bool is_step, PrefetchOptions options) {
    const SavedTensorHooksGuard guard(save_on_cpu(true, chain.weights, options));
    auto compiled_step = compile_step(step);
    auto compiled_loss = compile([&](const Tensor& x) { return chain.loss(x); });
    int64_t peak = 0;
    for (int i = 0; i < 2; ++i) {  // the first time, it is recorded
      gpu.memory().reset_peak();
      reset_offload_stats();
      const Tensor loss = is_step ? compiled_step(chain.x) : compiled_loss(chain.x);
      if (!is_step) loss.backward();
      peak = gpu.memory().stats().peak_bytes;
      const Tensors found = chain.take_grads();
      for (size_t k = 0; k < want.size(); ++k) CHECK(same_bits(found[k].cpu(), want[k].cpu()));
      CHECK(offload_stats().in_flight == 0);
      CHECK(offload_stats().bytes_to_host == offload_stats().bytes_back);
    }
    return peak;
  };
  for (const bool is_step : {false, true}) {
    INFO((is_step ? "step" : "function"));
    const int64_t unmoved = peak_of(is_step, {.nodes = 0});
    CHECK(offload_stats().early == 0);
    for (const int nodes : {1, 4, 64})
      for (const int64_t room : {int64_t{0}, 2 * kBytes, 100 * kBytes}) {
        INFO(nodes << " nodes ahead, room " << room);
        CHECK(peak_of(is_step, {.nodes = nodes, .room_bytes = room}) <= unmoved + room);
        CHECK(offload_stats().early > 0);
      }
  }
}

TEST_CASE_METHOD(OffloadFixture,
                 "in a backward, copies are begun between launches and waited for at the unpack") {
  const Tensor w = full({kWidth, kWidth}, 0.25, there).requires_grad_();
  const Tensor x = wave(kRows * kWidth).view({kRows, kWidth}).to(kCUDA);
  // Launches, copies back as "begin", and the compute stream's waits for them as "wait".
  const auto order = [&](int nodes) {
    const Tensor loss = [&] {
      SavedTensorHooksGuard guard(save_on_cpu(true, {w, x}, {.nodes = nodes, .room_bytes = 1 << 20}));
      return sum(retrograd::tanh(mm(retrograd::tanh(mm(x, w)), w)));
    }();
    driver.logs_launches = true;
    std::istringstream log(copies_of([&] { compile_backward()(loss); }));
    driver.logs_launches = false;
    std::string text;
    for (std::string line; std::getline(log, line);)
      text += line == "launch"                                      ? "launch "
              : line == "copy 2048 on 2"                            ? "begin "
              : line.ends_with(" on 1") && line.starts_with("wait") ? "wait "
                                                                    : "";
    return text;
  };
  // The first launch makes the cotangent. With 1, there is a launch between each copy and its wait, except for the
  // first.
  CHECK(order(0) == "launch begin wait launch launch begin wait launch begin wait launch launch launch ");
  CHECK(order(1) ==
        "launch begin wait launch begin launch wait begin launch wait launch launch launch launch ");
  CHECK(order(64) ==
        "launch begin begin begin wait launch launch wait launch wait launch launch launch launch ");
}
