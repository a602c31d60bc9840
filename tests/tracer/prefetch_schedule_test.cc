// When plans begin to prefetch values (tracer/plan/prefetch_schedule.h): the schedule itself, and the order in which a
// plan begins and unpacks, with an executor that computes nothing. Runs that compute: prefetch_test.cc.
#include "tracer/plan/prefetch_schedule.h"

#include <catch2/catch.hpp>
#include <sstream>

#include "retrograd/retrograd.h"
#include "tests/tracer/planned.h"
#include "tracer/plan/null_executor.h"

namespace rg = retrograd;
using rg::FetchedValue;
using rg::PrefetchOptions;
using rg::PrefetchSchedule;
using rg::Tensor;

// ---- the schedule ---------------------------------------------------------------------------------------------------

namespace {

using Steps = std::vector<size_t>;

// Ten steps that compute, with so much live in each.
PrefetchSchedule schedule(int64_t live = 0) {
  return PrefetchSchedule(std::vector<int64_t>(10, live), std::vector<bool>(10, true));
}

FetchedValue arrival(size_t step, int64_t bytes, PrefetchOptions options, size_t earliest = 0) {
  return {step, step, earliest, bytes, options};
}

}  // namespace

TEST_CASE("a value is begun as many nodes ahead as its pair asks for, as far as there is room") {
  CHECK(schedule().add({}).empty());
  const FetchedValue late[] = {arrival(5, 8, {.nodes = 0, .room_bytes = 100}), arrival(9, 8, {.nodes = -1})};
  CHECK(schedule().add(late) == Steps{5, 9});
  // One at a time: the peak is one value, and they do not overlap.
  const FetchedValue apart[] = {arrival(3, 8, {.nodes = 2}), arrival(7, 8, {.nodes = 3})};
  CHECK(schedule().add(apart) == Steps{1, 4});
  const FetchedValue near[] = {arrival(3, 8, {.nodes = 64}), arrival(7, 8, {.nodes = 64})};
  CHECK(schedule().add(near) == Steps{0, 4});
  const FetchedValue roomy[] = {arrival(3, 8, {.nodes = 64}), arrival(7, 8, {.nodes = 64, .room_bytes = 8})};
  CHECK(schedule().add(roomy) == Steps{0, 0});
  const FetchedValue unlimited[] = {arrival(3, 8, {.nodes = 64}),
                               arrival(7, 8, {.nodes = 64, .room_bytes = INT64_MAX})};
  CHECK(schedule().add(unlimited) == Steps{0, 0});
  const FetchedValue nearly[] = {arrival(3, 8, {.nodes = 64}), arrival(7, 8, {.nodes = 64, .room_bytes = 7})};
  CHECK(schedule().add(nearly) == Steps{0, 4});
}

TEST_CASE("what else is live decides, and what holds a value longer") {
  PrefetchSchedule valley({5, 9, 3, 3, 5, 3}, std::vector<bool>(6, true));
  const FetchedValue one[] = {arrival(5, 4, {.nodes = 64})};
  CHECK(valley.add(one) == Steps{2});  // the peak is 9: at 4, 3 and 2 there is room for 4
  const FetchedValue long_lived[] = {{2, 6, 0, 8, {.nodes = 64}}, {7, 7, 0, 8, {.nodes = 64}}};
  CHECK(schedule().add(long_lived) == Steps{0, 7});
}

TEST_CASE("nodes that do not compute are not counted, and a payload must be there") {
  PrefetchSchedule with_views(std::vector<int64_t>(6), {true, true, false, true, false, false});
  const FetchedValue one[] = {arrival(5, 8, {.nodes = 2})};
  CHECK(with_views.add(one) == Steps{1});
  const FetchedValue packed_late[] = {arrival(5, 8, {.nodes = 64}, 4), arrival(9, 8, {.nodes = 64}, 9)};
  CHECK(schedule().add(packed_late) == Steps{4, 9});
}

TEST_CASE("room does not add up over batches") {
  PrefetchSchedule s = schedule();
  const FetchedValue first[] = {arrival(1, 8, {}), arrival(2, 8, {.nodes = 2, .room_bytes = 8})};
  CHECK(s.add(first) == Steps{0, 0});
  const FetchedValue second[] = {arrival(6, 8, {.nodes = 9, .room_bytes = 8}, 3),
                            arrival(7, 8, {.nodes = 9, .room_bytes = 8}, 3),
                            arrival(8, 8, {.nodes = 9, .room_bytes = 8}, 3)};
  CHECK(s.add(second) == Steps{3, 3, 7});
}

TEST_CASE("nothing is begun between steps that are started together, which count as one") {
  const PrefetchSchedule::Together graphs[] = {{1, 4}, {5, 8}};
  const auto begins = [&](const FetchedValue& a, std::vector<int64_t> live = std::vector<int64_t>(10)) {
    PrefetchSchedule s(std::move(live), std::vector<bool>(10, true), graphs);
    return s.add({&a, 1}).front();
  };
  CHECK(begins(arrival(8, 8, {.nodes = 1})) == 5);
  CHECK(begins(arrival(8, 8, {.nodes = 2})) == 4);
  CHECK(begins(arrival(8, 8, {.nodes = 3})) == 1);
  CHECK(begins(arrival(9, 8, {.nodes = 1})) == 8);
  CHECK(begins(arrival(8, 8, {.nodes = 64}, 5)) == 5);
  CHECK(begins(arrival(8, 8, {.nodes = 64}, 6)) == 8);  // the payload comes too late
  CHECK(begins(arrival(8, 8, {.nodes = 64}), {9, 9, 9, 9, 9, 0, 9, 0, 0, 0}) ==
        8);  // no room for all of a graph
}

// ---- the order of a plan --------------------------------------------------------------------------------------------

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
  // Only launches, begins and unpacks.
  std::istringstream lines(executor.text());
  std::string text;
  for (std::string line; std::getline(lines, line);)
    if (!line.starts_with("allocate") && !line.starts_with("free")) text += line + "\n";
  return text;
}

}  // namespace

TEST_CASE("97, 98: a plan begins values k nodes ahead and unpacks them in their places") {
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
  // Six values of 64 bytes: at the end two gradients of weights are live, so at the beginning there is room for as
  // much.
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
