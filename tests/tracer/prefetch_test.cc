// Values that plans bring back ahead of their use (tracer/prefetch.h): the schedule by itself; the order in which a plan begins and unpacks,
// with an executor that computes nothing; backwards, compiled functions and steps on the CPU: bits, counters, peaks, errors.
// On a device: tests/cuda/offload_test.cc.
#include "tracer/prefetch.h"

#include <catch2/catch.hpp>
#include <numeric>

#include "retrograd/retrograd.h"
#include "tests/hooks/pairs.h"
#include "tests/tracer/planned.h"
#include "tracer/null_executor.h"

namespace rg = retrograd;
using rg::Arrival;
using rg::PrefetchOptions;
using rg::PrefetchSchedule;
using rg::Tensor;
using rg::Tensors;
using rg::testing::same_bits;
using rg::testing::wave;

// ---- the schedule --------------------------------------------------------------------------------------------------------------------

namespace {

using Steps = std::vector<size_t>;

// Ten steps that compute, with so much live in each.
PrefetchSchedule schedule(int64_t live = 0) {
  return PrefetchSchedule(std::vector<int64_t>(10, live), std::vector<bool>(10, true));
}

Arrival arrival(size_t step, int64_t bytes, PrefetchOptions options, size_t earliest = 0) {
  return {step, step, earliest, bytes, options};
}

}  // namespace

TEST_CASE("a value is begun as many nodes ahead as its pair asks for, as far as there is room") {
  CHECK(schedule().add({}).empty());
  const Arrival late[] = {arrival(5, 8, {.nodes = 0, .room_bytes = 100}), arrival(9, 8, {.nodes = -1})};
  CHECK(schedule().add(late) == Steps{5, 9});
  // One at a time: the peak is one value, and they do not meet.
  const Arrival apart[] = {arrival(3, 8, {.nodes = 2}), arrival(7, 8, {.nodes = 3})};
  CHECK(schedule().add(apart) == Steps{1, 4});
  const Arrival near[] = {arrival(3, 8, {.nodes = 64}), arrival(7, 8, {.nodes = 64})};
  CHECK(schedule().add(near) == Steps{0, 4});
  const Arrival roomy[] = {arrival(3, 8, {.nodes = 64}), arrival(7, 8, {.nodes = 64, .room_bytes = 8})};
  CHECK(schedule().add(roomy) == Steps{0, 0});
  const Arrival unlimited[] = {arrival(3, 8, {.nodes = 64}),
                               arrival(7, 8, {.nodes = 64, .room_bytes = INT64_MAX})};
  CHECK(schedule().add(unlimited) == Steps{0, 0});
  const Arrival nearly[] = {arrival(3, 8, {.nodes = 64}), arrival(7, 8, {.nodes = 64, .room_bytes = 7})};
  CHECK(schedule().add(nearly) == Steps{0, 4});
}

TEST_CASE("what else is live decides, and what holds a value longer") {
  PrefetchSchedule valley({5, 9, 3, 3, 5, 3}, std::vector<bool>(6, true));
  const Arrival one[] = {arrival(5, 4, {.nodes = 64})};
  CHECK(valley.add(one) == Steps{2});  // the peak is 9: at 4, 3 and 2 there is room for 4
  const Arrival long_lived[] = {{2, 6, 0, 8, {.nodes = 64}}, {7, 7, 0, 8, {.nodes = 64}}};
  CHECK(schedule().add(long_lived) == Steps{0, 7});
}

TEST_CASE("nodes that do not compute are not counted, and a payload must be there") {
  PrefetchSchedule with_views(std::vector<int64_t>(6), {true, true, false, true, false, false});
  const Arrival one[] = {arrival(5, 8, {.nodes = 2})};
  CHECK(with_views.add(one) == Steps{1});
  const Arrival packed_late[] = {arrival(5, 8, {.nodes = 64}, 4), arrival(9, 8, {.nodes = 64}, 9)};
  CHECK(schedule().add(packed_late) == Steps{4, 9});
}

TEST_CASE("room does not add up over batches") {
  PrefetchSchedule s = schedule();
  const Arrival first[] = {arrival(1, 8, {}), arrival(2, 8, {.nodes = 2, .room_bytes = 8})};
  CHECK(s.add(first) == Steps{0, 0});
  const Arrival second[] = {arrival(6, 8, {.nodes = 9, .room_bytes = 8}, 3),
                            arrival(7, 8, {.nodes = 9, .room_bytes = 8}, 3),
                            arrival(8, 8, {.nodes = 9, .room_bytes = 8}, 3)};
  CHECK(s.add(second) == Steps{3, 3, 7});
}

// ---- the order of a plan -------------------------------------------------------------------------------------------------------------

namespace {

// Keeps a copy, and notes when it is begun and when it is unpacked, by number.
class NotingPair final : public rg::SavedTensorHooks, private rg::Prefetcher {
 public:
  NotingPair(rg::NullExecutor& executor, PrefetchOptions options) : executor_(executor), options_(options) {}

  std::any pack(const Tensor& tensor) override { return std::any(Kept{tensor.clone(), packed_++}); }
  Tensor unpack(const std::any& payload) override {
    executor_.note("unpack " + std::to_string(of(payload).number));
    return of(payload).copy.clone();
  }
  rg::Prefetcher* prefetcher() override { return this; }

 private:
  struct Kept {
    Tensor copy;
    int number;
  };
  static const Kept& of(const std::any& payload) { return std::any_cast<const Kept&>(payload); }
  PrefetchOptions options() const override { return options_; }
  int64_t bytes(const std::any& payload) const override { return of(payload).copy.nbytes(); }
  void begin(const std::any& payload) override {
    executor_.note("begin " + std::to_string(of(payload).number));
  }
  void drop(const std::any&) noexcept override {}

  rg::NullExecutor& executor_;
  const PrefetchOptions options_;
  int packed_ = 0;
};

std::string order(PrefetchOptions options) {
  rg::NullExecutor executor;
  const Tensor x = rg::full({4, 4}, 0.5).requires_grad_(), w = rg::full({4, 4}, 0.5).requires_grad_();
  Tensor loss;
  {
    rg::SavedTensorHooksGuard guard(
        rg::RefPtr<rg::SavedTensorHooks>::adopt(new NotingPair(executor, options)));
    loss = rg::sum(rg::tanh(rg::mm(rg::tanh(rg::mm(x, w)), w)));
  }
  const rg::testing::Planned planned(loss, executor);
  executor.clear();
  planned.run();
  // Launches, beginnings and unpacks alone.
  std::istringstream lines(executor.text());
  std::string text;
  for (std::string line; std::getline(lines, line);)
    if (!line.starts_with("allocate") && !line.starts_with("free")) text += line + "\n";
  return text;
}

}  // namespace

TEST_CASE("a plan begins values k nodes ahead and unpacks them in their places") {
  CHECK(order({.nodes = 0}) == R"(unpack 5
launch tanh_backward#0 f32[4,4] over operand 1
unpack 4
launch mm#1 f32[4,4]
unpack 3
launch mm#2 f32[4,4]
unpack 2
launch tanh_backward#3 f32[4,4] over operand 1
unpack 1
launch mm#4 f32[4,4]
unpack 0
launch mm#5 f32[4,4]
launch accumulate#6 f32[4,4] over operand 0
)");
  CHECK(order({.nodes = 1, .room_bytes = 1000}) == R"(begin 5
unpack 5
begin 4
launch tanh_backward#0 f32[4,4] over operand 1
unpack 4
begin 3
launch mm#1 f32[4,4]
unpack 3
begin 2
launch mm#2 f32[4,4]
unpack 2
begin 1
launch tanh_backward#3 f32[4,4] over operand 1
unpack 1
begin 0
launch mm#4 f32[4,4]
unpack 0
launch mm#5 f32[4,4]
launch accumulate#6 f32[4,4] over operand 0
)");
  CHECK(order({.nodes = 64, .room_bytes = 1000}) == R"(begin 5
begin 4
begin 3
begin 2
begin 1
begin 0
unpack 5
launch tanh_backward#0 f32[4,4] over operand 1
unpack 4
launch mm#1 f32[4,4]
unpack 3
launch mm#2 f32[4,4]
unpack 2
launch tanh_backward#3 f32[4,4] over operand 1
unpack 1
launch mm#4 f32[4,4]
unpack 0
launch mm#5 f32[4,4]
launch accumulate#6 f32[4,4] over operand 0
)");
  // Six values of 64 bytes: at the end two gradients of weights are live, so at the beginning there is room for as much.
  CHECK(order({.nodes = 64}) == R"(begin 5
begin 4
begin 3
begin 2
unpack 5
launch tanh_backward#0 f32[4,4] over operand 1
unpack 4
launch mm#1 f32[4,4]
unpack 3
launch mm#2 f32[4,4]
begin 1
begin 0
unpack 2
launch tanh_backward#3 f32[4,4] over operand 1
unpack 1
launch mm#4 f32[4,4]
unpack 0
launch mm#5 f32[4,4]
launch accumulate#6 f32[4,4] over operand 0
)");
}

// ---- running -------------------------------------------------------------------------------------------------------------------------

namespace {

constexpr int64_t kRows = 24, kWidth = 32;

struct Model {
  Tensors weights;
  Tensor x = wave(kRows * kWidth).view({kRows, kWidth});

  Model() {
    for (int i = 0; i < 4; ++i)
      weights.push_back((wave(kWidth * kWidth, 0.2).view({kWidth, kWidth}) + 0.003 * i).requires_grad_());
  }
  Tensor loss(const Tensor& input) const {
    Tensor h = input;
    for (const Tensor& w : weights) h = rg::gelu(rg::mm(h, w)) + h.narrow(1, 0, kWidth);
    return rg::mean(rg::square(h) * rg::sigmoid(h));
  }
  Tensor packed_loss(PrefetchOptions options) const {
    rg::SavedTensorHooksGuard guard(rg::save_on_cpu(true, weights, options));
    return loss(x);
  }
  Tensors take_grads() const {
    Tensors grads;
    for (const Tensor& w : weights) {
      grads.push_back(w.grad());
      w.set_grad({});
    }
    return grads;
  }
  Tensors plain_grads() const {
    loss(x).backward();
    return take_grads();
  }
};

bool same(const Tensors& a, const Tensors& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_bits);
}

const std::vector<PrefetchOptions> kOptions = {{.nodes = 0},
                                               {.nodes = 1},
                                               {.nodes = 4},
                                               {.nodes = 64},
                                               {.nodes = 0, .room_bytes = 1 << 20},
                                               {.nodes = 1, .room_bytes = 1 << 20},
                                               {.nodes = 4, .room_bytes = 8000},
                                               {.nodes = 64, .room_bytes = 1 << 20}};

}  // namespace

TEST_CASE("backwards give the same bits however far ahead, and 0 nodes is an eager backward") {
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

TEST_CASE("as many are in flight as there is room for, beside those that the peak has room for") {
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
        const rg::PeakWatch watch;
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
    const rg::PeakWatch watch;
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

TEST_CASE("a kept tensor that was written to is still found out") {
  const Model model;
  rg::CompiledBackward backward = rg::compile_backward();
  for (const PrefetchOptions& options : kOptions) {
    const Tensor loss = model.packed_loss(options);
    {
      rg::NoGradGuard no_grad;
      model.weights[1].mul_(1);
    }
    try {
      backward(loss);
      FAIL("nothing was thrown");
    } catch (const rg::Error& e) {
      CHECK(e.category() == rg::Category::version_mismatch);
    }
    CHECK(rg::offload_stats().in_flight == 0);
    model.take_grads();
  }
}

TEST_CASE("a hook that throws loses nothing: what was begun is dropped, and comes again") {
  const Model model;
  const Tensors want = model.plain_grads();
  rg::CompiledBackward backward = rg::compile_backward();
  for (const PrefetchOptions& options : kOptions) {
    bool throws = true;
    Tensor middle;
    const auto loss_of = [&] {
      rg::SavedTensorHooksGuard guard(rg::save_on_cpu(true, model.weights, options));
      Tensor h = model.x;
      for (size_t i = 0; i < model.weights.size(); ++i) {
        h = rg::gelu(rg::mm(h, model.weights[i])) + h.narrow(1, 0, kWidth);
        if (i != 1) continue;
        middle = h;
        h.register_hook([&](const Tensor&) -> Tensor {
          if (throws) throw std::logic_error("the hook's");
          return {};
        });
      }
      return rg::mean(rg::square(h) * rg::sigmoid(h));
    };
    const int64_t live = rg::memory::stats().live_bytes;
    {
      const Tensor loss = loss_of();
      throws = true;
      CHECK_THROWS_AS(backward.backward({loss}, {}, true), std::logic_error);
      CHECK(rg::offload_stats().in_flight == 0);
      model.take_grads();
      throws = false;
      backward(loss);
      CHECK(same(model.take_grads(), want));
    }
    {  // not retained: what had not been unpacked is as it was
      const Tensor loss = loss_of();
      throws = true;
      CHECK_THROWS_AS(backward(loss), std::logic_error);
      model.take_grads();
      throws = false;
      const Tensor part = rg::sum(middle);
      backward(part);
      const Tensors found = model.take_grads();
      Tensor h = model.x;
      for (size_t i = 0; i < 2; ++i) h = rg::gelu(rg::mm(h, model.weights[i])) + h.narrow(1, 0, kWidth);
      rg::sum(h).backward();
      CHECK(same_bits(found[0], model.weights[0].grad()));
      CHECK(same_bits(found[1], model.weights[1].grad()));
      model.take_grads();
    }
    middle = {};
    CHECK(rg::memory::stats().live_bytes == live);
  }
}

TEST_CASE("a run that leaves its graph takes what was begun") {
  const Model model;
  rg::CompiledBackward backward = rg::compile_backward();
  const auto run = [&](bool adds_a_hook) {
    Tensor loss, early;
    rg::reset_offload_stats();
    {
      rg::SavedTensorHooksGuard guard(
          rg::save_on_cpu(true, model.weights, {.nodes = 64, .room_bytes = 1 << 20}));
      early = rg::gelu(rg::mm(model.x, model.weights[0]));
      const Tensor late = rg::gelu(rg::mm(early, model.weights[1]));
      late.register_hook([=](const Tensor&) -> Tensor {
        if (adds_a_hook) early.register_hook([](const Tensor& g) { return g * 2.0; });
        return {};
      });
      loss = rg::sum(rg::square(late));
    }
    backward(loss);
    CHECK(rg::offload_stats().in_flight == 0);
    CHECK(rg::offload_stats().bytes_back == rg::offload_stats().bytes_to_host);
    return model.take_grads();
  };
  rg::reset_offload_stats();
  const Tensors plain = run(false), doubled = run(true);
  CHECK(backward.stats().left == 1);
  CHECK(same_bits(plain[0] * 2.0, doubled[0]));
  CHECK(same_bits(plain[1], doubled[1]));
}

TEST_CASE(
    "an allocation that fails: the backward throws or gives the same bits, and leaves nothing in flight") {
  const Model model;
  const Tensors want = model.plain_grads();
  rg::CompiledBackward backward = rg::compile_backward();
  int thrown = 0, done = 0;
  for (int64_t count = 1; count < 60; ++count) {
    const Tensor loss = model.packed_loss({.nodes = 4, .room_bytes = 1 << 20});
    bool is_done = false;
    rg::memory::fail_allocation_after(count);
    try {
      backward(loss);
      is_done = true;
    } catch (const rg::OutOfMemory&) {
      ++thrown;
    }
    rg::memory::fail_allocation_after(0);
    CHECK(rg::offload_stats().in_flight == 0);
    const Tensors found = model.take_grads();
    if (is_done) CHECK(same(found, want));
    done += is_done;
  }
  CHECK(thrown > 0);
  CHECK(done > 0);
}
