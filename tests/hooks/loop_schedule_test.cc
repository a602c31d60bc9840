// LoopSchedule against an exhaustive search, and against the published costs of long loops.
#include "hooks/loop/schedule.h"

#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <deque>
#include <map>
#include <vector>

#include "hooks/checkpoint_loop.h"

namespace rg = retrograd;
using rg::LoopSchedule;

namespace {

// What the memory holds, and what is left: bits 2p and 2p + 1 of `held` mean the state before step p and the recorded
// step p; `hand` is the step whose state is at hand (-1: none); steps before `end` are to be reversed.
struct Situation {
  uint64_t held;
  int hand, end;
  auto operator<=>(const Situation&) const = default;
};

// The fewest executions, found by trying everything: copy, load, drop, execute, record, reverse.
int64_t by_search(int steps, int slots) {
  std::map<Situation, int64_t> cost;
  std::deque<Situation> next;
  const auto reach = [&](const Situation& s, int64_t c, bool is_free) {
    const auto [at, fresh] = cost.try_emplace(s, c);
    if (!fresh && at->second <= c) return;
    at->second = c;
    is_free ? next.push_front(s) : next.push_back(s);
  };
  reach({1, -1, steps}, 0, true);
  while (!next.empty()) {
    const Situation s = next.front();
    next.pop_front();
    const int64_t c = cost.at(s);
    if (s.end == 0) return c;
    const bool has_room = std::popcount(s.held) < slots;
    const uint64_t last_recorded = uint64_t{2} << 2 * (s.end - 1);
    if (s.held & last_recorded) reach({s.held & ~last_recorded, s.hand, s.end - 1}, c, true);
    for (int p = 0; p < s.end; ++p) {
      const uint64_t state = uint64_t{1} << 2 * p, recorded = uint64_t{2} << 2 * p;
      if (s.held & state) reach({s.held, p, s.end}, c, true);
      for (const uint64_t bit : {state, recorded})
        if (s.held & bit) reach({s.held & ~bit, s.hand, s.end}, c, true);
    }
    if (s.hand < 0 || s.hand >= s.end) continue;
    if (has_room) reach({s.held | uint64_t{1} << 2 * s.hand, s.hand, s.end}, c, true);
    if (s.hand == s.end - 1) reach({s.held, -1, s.end - 1}, c + 1, false);
    reach({s.held, s.hand + 1, s.end}, c + 1, false);
    if (has_room) reach({s.held | uint64_t{2} << 2 * s.hand, s.hand + 1, s.end}, c + 1, false);
  }
  return -1;
}

// Carries out the schedule, as the reversal does, and counts.
int64_t carried_out(int64_t steps, int64_t slots) {
  LoopSchedule schedule(slots);
  struct Slot {
    int64_t step;
    bool is_recorded;
  };
  std::vector<Slot> held{{0, false}};
  int64_t executed = 0;
  const auto free = [&] { return slots - static_cast<int64_t>(held.size()); };
  for (int64_t end = steps; end > 0;) {
    if (held.back().is_recorded && held.back().step == end - 1) {
      held.pop_back();
      --end;
      continue;
    }
    int64_t at = held.back().step;
    if (at == end) {
      held.pop_back();
      continue;
    }
    if (schedule.leaves_slot(end - at, free())) {
      held.pop_back();
    } else {
      const int64_t ahead = schedule.advance(end - at, free());
      executed += ahead;
      at += ahead;
    }
    for (; end - at > 1 && schedule.records_step(end - at, free()); ++at, ++executed)
      held.push_back({at, true});
    if (end - at == 1)
      ++executed, --end;
    else
      held.push_back({at, false});
    REQUIRE(free() >= 0);
  }
  return executed;
}

}  // namespace

TEST_CASE("no plan takes fewer steps") {
  for (int slots = 1; slots <= 4; ++slots)
    for (int steps = 1; steps <= (slots < 4 ? 12 : 8); ++steps) {
      CAPTURE(slots, steps);
      CHECK(rg::checkpoint_loop_steps(steps, slots) == by_search(steps, slots));
    }
}

TEST_CASE("the schedule takes the steps that it costs") {
  for (const int64_t slots : {1, 2, 3, 7, 40})
    for (const int64_t steps : {1, 2, 3, 5, 12, 39, 40, 41, 42, 100, 333}) {
      CAPTURE(slots, steps);
      CHECK(carried_out(steps, slots) == rg::checkpoint_loop_steps(steps, slots));
      CHECK(LoopSchedule(slots).from_slot(steps, slots - 1) == rg::checkpoint_loop_steps(steps, slots));
    }
}

TEST_CASE("long loops") {
  CHECK(rg::checkpoint_loop_steps(100, 5) == 352);
  CHECK(rg::checkpoint_loop_steps(1000, 20) == 2823);
  CHECK(rg::checkpoint_loop_steps(1000, 40) == 2142);
  CHECK(rg::checkpoint_loop_steps(10000, 20) == 39335);
  CHECK(rg::checkpoint_loop_steps(0, 1) == 0);
  CHECK(rg::checkpoint_loop_steps(5000, 5000) == 5000);
}

TEST_CASE("a loop that is too long for the tables") {
  const int64_t rows = std::min(LoopSchedule::kMostRows, LoopSchedule::kMostEntries / 21);
  const auto per_step = [](int64_t steps) {
    return static_cast<double>(rg::checkpoint_loop_steps(steps, 20)) / static_cast<double>(steps);
  };
  CHECK(per_step(rows) < per_step(rows + 1));
  CHECK(per_step(rows + 1) < 1.15 * per_step(rows));
  CHECK(per_step(2 * rows) < 1.4 * per_step(rows));
  CHECK(rg::checkpoint_loop_steps(30000, 2000) < 3 * 30000);
  CHECK(rg::checkpoint_loop_steps(100000, 99999) == 100000);
}

TEST_CASE("the steps that are kept while the end is not known") {
  for (const int64_t slots : {1, 2, 3, 5, 20}) {
    LoopSchedule schedule(slots);
    std::vector<LoopSchedule::Held> held;
    double worst = 0;
    for (int64_t steps = 1; steps <= 600; ++steps) {  // the step before last is kept, the last is at hand
      if (steps > 1) {
        held.push_back({steps - 2, true});
        if (static_cast<int64_t>(held.size()) > slots) {
          const size_t least = schedule.least_needed(held, steps - 1);
          REQUIRE(least > 0);
          held.erase(held.begin() + static_cast<std::ptrdiff_t>(least));
          held[least - 1].is_recorded = false;
        }
      }
      int64_t total = steps;
      for (size_t k = 0; k < held.size(); ++k) {
        const int64_t until = k + 1 < held.size() ? held[k + 1].step : steps - 1;
        if (!held[k].is_recorded)
          total += schedule.from_slot(until - held[k].step, slots - 1 - static_cast<int64_t>(k));
      }
      worst = std::max(
          worst, static_cast<double>(total) / static_cast<double>(rg::checkpoint_loop_steps(steps, slots)));
    }
    CAPTURE(slots);
    CHECK(worst < 1.15);
  }
}
