// Values that plans prefetch (tracer/plan/prefetch_schedule.h), on the CPU: backwards, compiled functions and steps,
// their bits, counters and peaks. When prefetches begin: prefetch_schedule_test.cc; errors: prefetch_errors_test.cc; on
// a device: tests/cuda/offload_plans_test.cc.
#include <catch2/catch.hpp>

#include "tests/tracer/offloaded_model.h"

namespace rg = retrograd;
using namespace retrograd::testing;
using rg::PrefetchOptions;
using rg::Tensor;
using rg::Tensors;

TEST_CASE("98: backwards give the same bits however far ahead, and 0 nodes is an eager backward") {
  const Model model;
  const Tensors want = model.plain_grads();
  rg::reset_offload_stats();
  model.packed_loss({.nodes = 64, .room_bytes = 1 << 20}).backward();
  CHECK(same(model.take_grads(), want));
  const rg::OffloadStats eager = rg::offload_stats();
  CHECK(eager.early == 0);
  CHECK(eager.bytes_back == eager.bytes_to_host);
  rg::CompiledBackward backward = rg::compile_backward();
  for (const PrefetchOptions& options : kOptions) {
    INFO(options.nodes << " nodes, room " << options.room_bytes);
    rg::reset_offload_stats();
    backward(model.packed_loss(options));
    CHECK(same(model.take_grads(), want));
    const rg::OffloadStats stats = rg::offload_stats();
    CHECK(stats.bytes_back == eager.bytes_back);
    CHECK(stats.in_flight == 0);
    CHECK(stats.bytes_in_flight == 0);
    CHECK((stats.early > 0) == (options.nodes > 0));
    CHECK((stats.most_in_flight > 0) == (options.nodes > 0));
  }
  CHECK(backward.stats().captures == 1);
  // All of them before the first is used.
  CHECK(rg::offload_stats().most_bytes_in_flight == eager.bytes_back);
}

TEST_CASE("as many are in flight as there is room for, besides those that the peak has room for") {
  const Model model;
  const auto in_flight = [&](PrefetchOptions options) {
    const Tensor loss = model.packed_loss(options);
    rg::reset_offload_stats();
    rg::compile_backward()(loss);
    model.take_grads();
    return rg::offload_stats().most_bytes_in_flight;
  };
  const int64_t value = kRows * kWidth * 4, without = in_flight({.nodes = 64});
  CHECK(in_flight({.nodes = 1, .room_bytes = 1 << 20}) <= 2 * value);
  int64_t before = without;
  for (int i = 1; i < 5; ++i) {
    const int64_t now = in_flight({.nodes = 64, .room_bytes = i * value});
    CHECK(now <= without + i * value);
    CHECK(now >= before);
    before = now;
  }
  CHECK(before > without);
}

TEST_CASE("compiled functions and steps, several backwards in one step included") {
  const Model model;
  const Tensors want = model.plain_grads();
  for (const PrefetchOptions& options : kOptions) {
    INFO(options.nodes << " nodes, room " << options.room_bytes);
    const auto pair = rg::save_on_cpu(true, model.weights, options);
    auto function = rg::compile([&](const Tensor& x) { return model.loss(x); });
    auto step = rg::compile_step([&](const Tensor& x) {
      for (const Tensor& w : model.weights) w.set_grad({});
      const Tensor loss = model.loss(x);
      loss.backward();
      return loss;
    });
    auto twice = rg::compile_step([&](const Tensor& x) {
      for (const Tensor& w : model.weights) w.set_grad({});
      model.loss(x).backward();
      const Tensor loss = model.loss(x * 0.5);
      loss.backward();
      return loss;
    });
    for (int i = 0; i < 2; ++i) {
      rg::SavedTensorHooksGuard guard(pair);
      rg::reset_offload_stats();
      const Tensor loss = function(model.x);
      {
        const rg::PeakMeter watch;
        loss.backward();
        CHECK(watch.report().runs == 1);
        CHECK(watch.report().differing == 0);
      }
      CHECK(same(model.take_grads(), want));
      CHECK((rg::offload_stats().early > 0) == (options.nodes > 0));
      rg::reset_offload_stats();
      step(model.x);
      CHECK(same(model.take_grads(), want));
      CHECK((rg::offload_stats().early > 0) == (options.nodes > 0));
      const int64_t once = rg::offload_stats().early;
      rg::reset_offload_stats();
      twice(model.x);
      model.take_grads();
      CHECK(rg::offload_stats().early >= 2 * once);
      CHECK(rg::offload_stats().bytes_back == rg::offload_stats().bytes_to_host);
      CHECK(rg::offload_stats().in_flight == 0);
    }
    model.loss(model.x).backward();
    model.loss(model.x * 0.5).backward();
    const Tensors sums = model.take_grads();
    rg::SavedTensorHooksGuard guard(pair);
    twice(model.x);
    CHECK(same(model.take_grads(), sums));
  }
}

TEST_CASE("the planned peak is met") {
  const Model model;
  rg::CompiledBackward backward = rg::compile_backward();
  for (const PrefetchOptions& options : kOptions) {
    const rg::PeakMeter watch;
    for (int i = 0; i < 2; ++i) backward(model.packed_loss(options));
    CHECK(watch.report().runs == 2);
    CHECK(watch.report().differing == 0);
    CHECK(watch.report().planned_bytes == watch.report().measured_bytes);
    CHECK(watch.report().hook_bytes > 0);
  }
}

TEST_CASE("a retained graph is brought back again, and so are second derivatives") {
  const Model model;
  const Tensors want = model.plain_grads();
  rg::CompiledBackward backward = rg::compile_backward();
  for (const PrefetchOptions& options : kOptions) {
    const Tensor loss = model.packed_loss(options);
    for (int i = 0; i < 3; ++i) {
      backward.backward({loss}, {}, i < 2);
      CHECK(same(model.take_grads(), want));
      CHECK(rg::offload_stats().in_flight == 0);
    }
    CHECK_THROWS_AS(backward(loss), rg::Error);
    const auto second = [&](const Tensor& first_loss) {
      const Tensors g = backward.grad({first_loss}, model.weights, {}, {}, true);
      backward(rg::sum(rg::square(g[0])) + rg::sum(rg::square(g[2])));
      return model.take_grads();
    };
    CHECK(same(second(model.packed_loss(options)), second(model.loss(model.x))));
  }
  CHECK(rg::offload_stats().in_flight == 0);
}
