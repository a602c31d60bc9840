// Planned peaks (tracer/plan/peak_meter.h): a run takes exactly the bytes that are predicted before it begins.
// Backwards captured from the tape, compiled functions and whole steps, over layouts, shared saved values, existing
// gradients, and hooks, whose bytes are counted separately.
#include "tests/tracer/peak_model.h"

using namespace retrograd::testing;
namespace rg = retrograd;
using rg::PeakMeter;
using rg::PeakReport;
using rg::Tensor;
using rg::Tensors;

namespace {

constexpr int64_t kRows = kPeakRows, kWidth = kPeakWidth;

const auto leaf = peak_leaf;
const auto model = peak_loss;
const auto parameters = peak_parameters;

void check(const PeakReport& report, int64_t runs) {
  check_met(report, runs);
  CHECK(report.hook_bytes == 0);
}

}  // namespace

TEST_CASE("a captured backward takes what was planned") {
  rg::CompiledBackward backward = rg::compile_backward();
  const Tensor x = rg::randn({kRows, kWidth});
  const Tensors w = parameters();
  const PeakMeter watch;
  backward(model(x, w));  // .grad is not there
  const int64_t first = watch.report().planned_bytes;
  backward(model(x, w));  // and now it is
  check(watch.report(), 2);
  CHECK(first > rg::memory::stats().live_bytes);
  // Kept for another backward, values are not freed during this one.
  const Tensor loss = model(x, w);
  for (int i = 0; i < 2; ++i) backward.backward({loss}, {}, true);
  check(watch.report(), 4);
  CHECK(watch.report().planned_bytes > first);
  // Somebody else holds the saved value.
  const Tensor h = rg::mm(x, w[0]);
  backward(rg::sum(rg::tanh(h) * h));
  check(watch.report(), 5);
}

TEST_CASE("gradients of inputs, and in another layout than their leaf's") {
  rg::CompiledBackward backward = rg::compile_backward();
  const Tensor a = rg::randn({kWidth, kRows}).t().requires_grad_(), b = leaf({kRows, kWidth});
  const PeakMeter watch;
  const Tensors grads = backward.grad({rg::sum(rg::sin(a) * rg::cos(b))}, {a, b});
  CHECK(grads.size() == 2);
  backward(rg::sum(rg::sin(a) * rg::cos(rg::flip(b, {0}))));
  backward(rg::sum(rg::expand(a, {3, kRows, kWidth}) * b));
  check(watch.report(), 3);
}

TEST_CASE("a compiled function and its backward take what was planned") {
  const Tensors w = parameters();
  auto loss = rg::compile([&](const Tensor& x) { return model(x, w); });
  const Tensor x = rg::randn({kRows, kWidth});
  const PeakMeter watch;
  for (int i = 0; i < 2; ++i) loss(x).backward();
  check(watch.report(), 4);
}

TEST_CASE("a step takes what was planned") {
  const Tensors w = parameters();
  rg::optim::AdamW optimizer(w, {});
  auto step = rg::compile_step([&](const Tensor& x) {
    optimizer.zero_grad();
    const Tensor loss = model(x, w);
    loss.backward();
    optimizer.step();
    return loss;
  });
  const PeakMeter watch;
  for (int i = 0; i < 3; ++i) step(rg::randn({kRows, kWidth}));
  check(watch.report(), 3);
}

TEST_CASE("a step takes no more than its parts as they stand") {
  const auto peak_of = [](const std::function<void()>& f) {
    f();  // the first time, there is something to record
    rg::memory::reset_peak();
    f();
    return rg::memory::stats().peak_bytes;
  };
  const Tensors w = parameters();
  const Tensor x = rg::randn({kRows, kWidth});
  rg::optim::AdamW optimizer(w, {});
  const auto train = [&](const Tensor& batch) {
    const Tensor loss = model(batch, w);
    loss.backward();
    optimizer.step();
    optimizer.zero_grad();
    return loss;
  };
  const int64_t eager = peak_of([&] { train(x); });
  auto step = rg::compile_step(train);
  CHECK(peak_of([&] { step(x); }) <= eager);
}

TEST_CASE("a table that is looked up in and multiplied with has one gradient's memory, and eager's bits") {
  constexpr int64_t kWords = 2000, kTable = kWords * kWidth * 4;
  rg::manual_seed(5);
  const Tensor table = leaf({kWords, kWidth}), same = table.detach().clone().requires_grad_();
  const Tensor tokens = rg::randint(0, kWords, {kRows}), next = rg::randint(0, kWords, {kRows});
  rg::optim::AdamW optimizer({table}), eager({same});
  const auto train = [&](const Tensor& weight, rg::optim::AdamW& by) {
    const Tensor loss = rg::cross_entropy(rg::linear(rg::tanh(rg::embedding(weight, tokens)), weight), next);
    loss.backward();
    by.step();
    by.zero_grad();
    return loss;
  };
  auto step = rg::compile_step([&] { return train(table, optimizer); });
  const PeakMeter watch;
  const int64_t before = rg::memory::stats().live_bytes;
  for (int i = 0; i < 3; ++i) {
    CHECK(train(same, eager).item<float>() == step().item<float>());
    CHECK(table.to_vector() == same.to_vector());
  }
  check(watch.report(), 3);
  CHECK(watch.report().planned_bytes - before < 2 * kTable);
}

TEST_CASE("saved values of a compiled function go as its backward uses them") {
  const Tensors w = parameters();
  auto loss = rg::compile([&](const Tensor& batch) { return model(batch, w); });
  const Tensor x = rg::randn({kRows, kWidth});
  const auto peak_of = [&](bool retain) {
    const Tensor value = loss(x);
    rg::memory::reset_peak();
    value.backward({}, retain);
    if (!retain) CHECK_THROWS_AS(value.backward(), rg::Error);
    if (retain) value.backward();
    return rg::memory::stats().peak_bytes;
  };
  peak_of(false);
  const int64_t released = peak_of(false);
  CHECK(released < peak_of(true));
}

TEST_CASE("what hooks allocate has a line of its own") {
  constexpr int64_t kBytes = kRows * kWidth * 4;
  rg::CompiledBackward backward = rg::compile_backward();
  const Tensor x = leaf({kRows, kWidth});
  const auto copies = rg::saved_tensor_hooks([](const Tensor& t) { return t.clone(); },
                                             [](const Tensor& t) { return t.clone(); });
  const PeakMeter watch;
  for (int i = 0; i < 2; ++i) {
    rg::SavedTensorHooksGuard guard(copies);
    const Tensor y = rg::sin(rg::exp(x));
    backward(rg::sum(y * y));
  }
  CHECK(watch.report().runs == 2);
  CHECK(watch.report().differing == 0);
  CHECK(watch.report().hook_bytes == kBytes);
}

TEST_CASE("what hooks free is told apart, too") {
  rg::CompiledBackward backward = rg::compile_backward();
  const Tensor x = rg::randn({kRows, kWidth});
  const Tensors w = parameters();
  for (const auto& pair : {rg::save_as_half(w), rg::save_as_fp8(w),
                           rg::saved_tensor_hooks([](const Tensor& t) { return t * 2.0; },
                                                  [](const Tensor& t) { return t / 2.0; })}) {
    const PeakMeter watch;
    for (int i = 0; i < 2; ++i) {
      rg::SavedTensorHooksGuard guard(pair);
      backward(model(x, w));
    }
    CHECK(watch.report().runs == 2);
    CHECK(watch.report().differing == 0);
    CHECK(watch.report().planned_bytes == watch.report().measured_bytes);
    CHECK((watch.report().hook_bytes > 0) == !pair->traceable);
  }
}
