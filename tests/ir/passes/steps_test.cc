// Passes and the memory plan on recorded training steps: values written outside are still computed there, the peak does
// not rise, the memory plan is tight. With "[.figures]" a table of larger ones. any_combination_test.cc tests that the
// bits do not change.
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdio>

#include "ir/passes/memory_plan.h"
#include "tests/ir/passes/passes_test.h"
#include "tests/ir/passes/recorded_steps.h"

namespace rg = retrograd;
namespace ir = rg::ir;
using recorded_steps::Step;

namespace {

ir::Lifetimes lifetimes_of(const Step& step) { return ir::lifetimes(step.graph, {.writes = step.writes}); }

// Of how many writes the value is computed in place.
size_t in_place(const Step& step) {
  const ir::Lifetimes found = lifetimes_of(step);
  size_t n = 0;
  for (const ir::OutsideWrite& w : step.writes) {
    const int32_t block =
        found.block_of[static_cast<size_t>(step.graph.outputs()[static_cast<size_t>(w.output)])];
    n += block >= 0 && found.blocks[static_cast<size_t>(block)].bytes == 0;
  }
  return n;
}

ir::PassReport optimise(Step& step, ir::PassSet off = {}) {
  ir::PassInput input = rg::rewrites::all();
  input.writes = step.writes;
  return ir::run_passes(step.graph, {.input = input, .off = off, .verify = true});
}

double milliseconds(auto f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

TEST_CASE("recorded steps") {
  for (Step& step : recorded_steps::all_small()) {
    INFO(step.name);
    const size_t nodes = step.graph.nodes().size(), written = in_place(step);
    const int64_t peak = lifetimes_of(step).peak_bytes();
    CHECK(step.writes.size() >= 4);
    CHECK(written == step.writes.size());
    optimise(step);
    CHECK(in_place(step) == written);
    CHECK(lifetimes_of(step).peak_bytes() <= peak);
    CHECK((step.graph.nodes().size() < nodes ||
           lifetimes_of(step).peak_bytes() < peak));  // it recomputes values
    CHECK(ir::plan_memory(lifetimes_of(step)).waste() < 0.05);
  }
}

TEST_CASE("figures of recorded steps", "[.figures]") {
  std::vector<Step> steps = recorded_steps::all_small();
  steps.push_back(recorded_steps::gpt(12, 768, 4, 64));
  steps.push_back(recorded_steps::gpt(12, 768, 4, 64, true));
  steps.push_back(recorded_steps::gpt(100, 16, 2, 8));
  steps.push_back(recorded_steps::gpt(1000, 16, 2, 8));
  steps.push_back(recorded_steps::mixed_gpt(100, 16, 2, 8));
  std::printf("%-40s %7s %7s  %s\n", "", "nodes", "after",
              "ns a node of: simplify broadcast cse dce schedule, plan");
  for (Step& step : steps) {
    const size_t before = step.graph.nodes().size();
    const ir::Lifetimes as_recorded = lifetimes_of(step);
    const ir::PassReport report = optimise(step);
    std::printf("%-40s %7zu %7zu ", step.name.c_str(), before, step.graph.nodes().size());
    for (const ir::PassReport::Run& run : report.runs)
      std::printf(" %6.0f%s", static_cast<double>(run.nanoseconds) / static_cast<double>(before),
                  run.changed ? "*" : " ");
    const ir::Lifetimes found = lifetimes_of(step);
    ir::MemoryPlan plan;
    const double ms = milliseconds([&] { plan = ir::plan_memory(found); });
    std::printf(" %7.0f\n  peak %.3f -> %.3f MB, arena %.3f MB, waste %.2f %%\n",
                ms * 1e6 / static_cast<double>(before), static_cast<double>(as_recorded.peak_bytes()) / 1e6,
                static_cast<double>(found.peak_bytes()) / 1e6, static_cast<double>(plan.arena_bytes) / 1e6,
                plan.waste() * 100);
  }
}
