// The memory plan: lifetimes of small graphs by hand, random blocks that must not overlap, small cases against the
// optimal plan, and the waste on realistic graphs.
#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <random>

#include "engine/runner.h"
#include "ir/passes/memory_plan.h"
#include "tests/ir/ir_test.h"

namespace rg = retrograd;
namespace ir = rg::ir;

namespace {

// "0:400 1-3 escapes" of the block of each value, "-" for none.
std::string blocks_of(const std::string& text, ir::LifetimeOptions options = {}) {
  const ir::Graph graph = ir_test::parse(text);
  ir::GroupMemories groups(graph, rg::cpu_executor());
  options.groups = &groups;
  const ir::Lifetimes found = ir::lifetimes(graph, options);
  std::string all;
  for (const int32_t b : found.block_of) {
    all += all.empty() ? "" : ", ";
    if (b < 0) {
      all += "-";
      continue;
    }
    const ir::Block& block = found.blocks[static_cast<size_t>(b)];
    all += std::to_string(b) + ":" + std::to_string(block.bytes) + " " + std::to_string(block.first) + "-" +
           std::to_string(block.last) + (block.escapes ? " escapes" : "");
  }
  return all;
}

bool overlap(const ir::Block& a, const ir::Block& b) { return a.first <= b.last && b.first <= a.last; }

void check_plan(const ir::Lifetimes& lifetimes, const ir::MemoryPlan& plan) {
  REQUIRE(plan.offsets.size() == lifetimes.blocks.size());
  REQUIRE(plan.arena_bytes >= plan.lower_bound);
  std::vector<size_t> order;  // by time
  for (size_t i = 0; i < plan.offsets.size(); ++i) {
    const ir::Block& b = lifetimes.blocks[i];
    REQUIRE(b.escapes == (plan.offsets[i] < 0));
    if (b.escapes) continue;
    REQUIRE(plan.offsets[i] % ir::MemoryPlan::alignment_of(b.bytes) == 0);
    REQUIRE(plan.offsets[i] + b.bytes <= plan.arena_bytes);
    order.push_back(i);
  }
  std::ranges::sort(order, {}, [&](size_t i) { return lifetimes.blocks[i].first; });
  for (size_t n = 0; n < order.size(); ++n) {
    const ir::Block& a = lifetimes.blocks[order[n]];
    for (size_t k = n + 1; k < order.size() && lifetimes.blocks[order[k]].first <= a.last; ++k) {
      const ir::Block& b = lifetimes.blocks[order[k]];
      const int64_t x = plan.offsets[order[n]], y = plan.offsets[order[k]];
      if (a.bytes && b.bytes && x < y + b.bytes && y < x + a.bytes) FAIL("two live blocks overlap");
    }
  }
}

ir::Lifetimes random_lifetimes(std::mt19937& random, int blocks, int nodes, int most_bytes, int longest) {
  ir::Lifetimes all;
  all.nodes = nodes;
  const auto below = [&](int n) { return static_cast<int32_t>(random() % static_cast<uint32_t>(n)); };
  for (int i = 0; i < blocks; ++i) {
    const int32_t first = below(nodes);
    all.blocks.push_back(
        {below(most_bytes + 1), first, std::min(first + below(longest), nodes), below(16) == 0});
  }
  return all;
}

// The smallest arena: some order of first fit gives it.
int64_t best_arena(const ir::Lifetimes& lifetimes) {
  std::vector<size_t> order;
  for (size_t i = 0; i < lifetimes.blocks.size(); ++i)
    if (!lifetimes.blocks[i].escapes) order.push_back(i);
  const auto aligned = [](int64_t at, int64_t bytes) {
    const int64_t unit = ir::MemoryPlan::alignment_of(bytes);
    return (at + unit - 1) / unit * unit;
  };
  int64_t best = INT64_MAX;
  do {
    std::vector<int64_t> offsets(lifetimes.blocks.size(), -1);
    int64_t size = 0;
    for (size_t i : order) {
      const ir::Block& a = lifetimes.blocks[i];
      int64_t at = 0;
      for (bool moved = true; moved;) {
        moved = false;
        for (size_t k = 0; k < offsets.size(); ++k) {
          const ir::Block& b = lifetimes.blocks[k];
          if (offsets[k] < 0 || !overlap(a, b)) continue;
          if (at < offsets[k] + b.bytes && offsets[k] < at + a.bytes) {
            at = aligned(offsets[k] + b.bytes, a.bytes);
            moved = true;
          }
        }
      }
      offsets[i] = at;
      size = std::max(size, at + a.bytes);
    }
    best = std::min(best, size);
  } while (std::ranges::next_permutation(order).found);
  return best;
}

}  // namespace

TEST_CASE("lifetimes: views, values in place, what escapes") {
  CHECK(blocks_of(R"(graph @g(%0: f32[10,10], $1: hook, @2: leaf f32[10,10]) {
  %1 = flip %0 {dims=[0]} : f32[10,10]
  %2 = neg %1 : f32[10,10]
  %3 = view %2 {size=[100]} : f32[100]
  %4 = sum %3 {dim=[0], keepdim=false} : f32[]
  %5 = mul %2, %4 : f32[10,10]
  %6 = exp %5 : f32[10,10]
  %7 = hook $1, %6 : f32[10,10]
  accumulate_grad @2, %7
  %8 = cos %0 : f32[10,10]
  accumulate_grad @2, %8
}
)") == "-, 0:400 0-6 escapes, 0:400 0-6 escapes, 0:400 0-6 escapes, 1:4 3-4, 0:400 0-6 escapes, 0:400 0-6 "
       "escapes, -, "
       "2:400 8-10 escapes");
  CHECK(blocks_of(R"(graph @g(%0: f32[4]) {
  %1 = flip %0 {dims=[0]} : f32[4]
  %2 = neg %1 : f32[4]
  %3 = add %1, %2 : f32[4]
  %4 = exp %3 : f32[4]
  return %4
}
)",
                  {.in_place = false}) == "-, 0:16 0-2, 1:16 1-2, 2:16 2-3, 3:16 3-4 escapes");
}

TEST_CASE(
    "lifetimes: not in place where another operand views what dies, of another type, or that is needed") {
  CHECK(blocks_of(R"(graph @g(%0: f32[4,4]) {
  %1 = flip %0 {dims=[0]} : f32[4,4]
  %2 = permute %1 {dims=[1,0]} : f32[4,4]
  %3 = add %1, %2 : f32[4,4]
  %4 = to %3 {dtype=f64} : f64[4,4]
  %5 = neg %4 : f64[4,4]
  %6 = add %5, %4 : f64[4,4]
  %7 = sum %6 {dim=[0,1], keepdim=false} : f64[]
  return %7
}
)") == "-, 0:64 0-2, 0:64 0-2, 1:64 2-3, 2:128 3-5, 3:128 4-6, 3:128 4-6, 4:8 6-7 escapes");
}

TEST_CASE("lifetimes: contiguous may give its operand or a copy") {
  CHECK(blocks_of(R"(graph @g(%0: f32[4,4]) {
  %1 = flip %0 {dims=[0]} : f32[4,4]
  %2 = permute %1 {dims=[1,0]} : f32[4,4]
  %3 = contiguous %2 : f32[4,4]
  %4 = view %3 {size=[16]} : f32[16]
  %5 = sum %4 {dim=[0], keepdim=false} : f32[]
  %6 = mul %5, 2.0 : f32[]
  %7 = sum %6 {dim=[], keepdim=false} : f32[]
  return %7
}
)") == "-, 0:64 0-4, 0:64 0-4, 1:64 2-4, 1:64 2-4, 2:4 4-6, 2:4 4-6, 3:4 6-7 escapes");
}

TEST_CASE("lifetimes: the nodes of a group are one step, and values inside it have no block") {
  CHECK(blocks_of(R"(graph @g(%0: f32[4,4]) {
  %1 = flip %0 {dims=[0]} : f32[4,4]
  %2 = flip %0 {dims=[1]} : f32[4,4]
  group {
    %3 = neg %1 : f32[4,4]
    %4 = mul %3, %2 : f32[4,4]
    %5 = exp %4 : f32[4,4]
  }
  %6 = flip %5 {dims=[0]} : f32[4,4]
  %7 = mm %6, %4 : f32[4,4]
  return %7
}
)") == "-, 0:64 0-6, 1:64 1-5, -, 0:64 0-6, 1:64 1-5, 2:64 5-6, 3:64 6-7 escapes");
  // Not over an operand that is read when the output has been written.
  CHECK(blocks_of(R"(graph @g(%0: f32[4,4]) {
  %1 = flip %0 {dims=[0]} : f32[4,4]
  group {
    %2 = neg %1 : f32[4,4]
    %3 = mul %1, %2 : f32[4,4]
  }
  %4 = mm %2, %3 : f32[4,4]
  return %4
}
)") == "-, 0:64 0-3, 1:64 1-3, 0:64 0-3, 2:64 3-4 escapes");
}

TEST_CASE("lifetimes: inputs whose memory goes with their last use") {
  const std::array<int32_t, 3> all = {0, 1, 2};
  CHECK(blocks_of(R"(graph @g(%0: f32[4], %1: f32[4], %2: f32[4], $3: hook) {
  %3 = neg %0 : f32[4]
  %4 = cat %1, %3 {dim=0} : f32[8]
  %5 = hook $3, %1 : f32[4]
  %6 = exp %1 : f32[4]
  return %4, %6
}
)",
                  {.given = all}) ==
        "0:16 0-1 escapes, 1:16 0-3 escapes, 2:0 0-0 escapes, 0:16 0-1 escapes, 3:32 1-4 escapes, -, 4:16 "
        "3-4 escapes");
}

TEST_CASE("peaks count all that is live at one node") {
  const ir::Graph graph = ir_test::parse(R"(graph @g[s0 = 10](%0: f32[s0]) {
  %1 = flip %0 {dims=[0]} : f32[s0]
  %2 = neg %1 : f32[s0]
  %3 = cat %2, %2 {dim=0} : f32[(s0+s0)]
  %4 = sum %3 {dim=[0], keepdim=false} : f32[]
  return %4
}
)");
  CHECK(ir::lifetimes(graph).peak_bytes() == 120);
  CHECK(ir::lifetimes(graph, {.in_place = false}).peak_bytes() == 120);
  const std::vector<rg::Number> values = {rg::Number::of(int64_t{100}), rg::Number::of(int64_t{200})};
  CHECK(ir::lifetimes(graph, {.values = values}).peak_bytes() == 1200);
  CHECK(ir::plan_memory(ir::lifetimes(graph)).arena_bytes == 120);  // 40 and 80
}

TEST_CASE("small blocks fill no lines, large ones begin with one") {
  using ir::MemoryPlan;
  CHECK(MemoryPlan::alignment_of(4) == 4);
  CHECK(MemoryPlan::alignment_of(40) == 8);
  CHECK(MemoryPlan::alignment_of(128) == 64);
  CHECK(MemoryPlan::alignment_of(4095) == 1);
  CHECK(MemoryPlan::alignment_of(4100) == 64);
  ir::Lifetimes lifetimes;
  lifetimes.nodes = 1;
  for (const int64_t bytes : {4, 40, 40, 8192, 4}) lifetimes.blocks.push_back({bytes, 0, 0, false});
  const MemoryPlan plan = ir::plan_memory(lifetimes);
  check_plan(lifetimes, plan);
  CHECK(plan.arena_bytes == 8280);
  CHECK(plan.lower_bound == 8280);
}

TEST_CASE("random blocks never overlap, and little is wasted") {
  std::mt19937 random(1);
  CHECK(ir::plan_memory({}).arena_bytes == 0);
  double waste = 0;
  constexpr int kPlans = 300;
  for (int i = 0; i < kPlans; ++i) {
    const int blocks = 1 + static_cast<int>(random() % 300), nodes = 1 + static_cast<int>(random() % 400);
    const ir::Lifetimes lifetimes =
        random_lifetimes(random, blocks, nodes, i % 3 ? 5000 : 64, 1 + static_cast<int>(random() % 60));
    const ir::MemoryPlan plan = ir::plan_memory(lifetimes);
    check_plan(lifetimes, plan);
    CHECK(plan.peak_bytes == lifetimes.peak_bytes());
    waste += plan.waste();
  }
  WARN("waste on random blocks: " << waste / kPlans * 100 << " percent");
  CHECK(waste / kPlans < 0.05);
}

TEST_CASE("small cases are near the best plan") {
  std::mt19937 random(2);
  double more = 0;
  int best = 0;
  constexpr int kCases = 400;
  for (int i = 0; i < kCases; ++i) {
    const ir::Lifetimes lifetimes = random_lifetimes(random, 3 + i % 5, 8, 640, 6);
    const ir::MemoryPlan plan = ir::plan_memory(lifetimes);
    const int64_t least = best_arena(lifetimes);
    if (least == INT64_MAX || least == 0) continue;
    REQUIRE(plan.lower_bound <= least);
    REQUIRE(plan.arena_bytes >= least);
    best += plan.arena_bytes == least;
    more += static_cast<double>(plan.arena_bytes) / static_cast<double>(least) - 1;
  }
  WARN("best in " << best << " of " << kCases << ", " << more / kCases * 100 << " percent more on average");
  CHECK(more / kCases < 0.005);
}

TEST_CASE("blocks of one size need no more than the lower bound") {
  std::mt19937 random(3);
  for (int i = 0; i < 20; ++i) {
    ir::Lifetimes lifetimes = random_lifetimes(random, 500, 300, 1, 80);
    for (ir::Block& b : lifetimes.blocks) b.bytes = 1000;
    const ir::MemoryPlan plan = ir::plan_memory(lifetimes);
    check_plan(lifetimes, plan);
    CHECK(plan.arena_bytes == plan.lower_bound);
  }
}

TEST_CASE("a hundred thousand blocks", "[.slow]") {
  std::mt19937 random(4);
  for (const int longest : {5, 100, 3000, 100000}) {
    const ir::Lifetimes lifetimes = random_lifetimes(random, 100000, 100000, 1 << 20, longest);
    const auto start = std::chrono::steady_clock::now();
    const ir::MemoryPlan plan = ir::plan_memory(lifetimes);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    WARN("up to " << longest << " nodes: " << seconds << " s, waste " << plan.waste() * 100 << " percent");
    CHECK(seconds < 30);
  }
}
