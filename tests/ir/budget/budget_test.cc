// Solvers of memory budgets on plain data: a measure by hand, the exact solver against brute force, the greedy one
// against its promises and the exact one.
#include <catch2/catch.hpp>
#include <optional>

#include "ir/budget/exact.h"
#include "ir/budget/greedy.h"
#include "ir/budget/repair.h"
#include "ir/budget/solve.h"
#include "tests/ir/budget/brute_force.h"
#include "tests/ir/budget/chain_problem.h"
#include "tests/ir/budget/random_problem.h"

namespace budget = retrograd::ir::budget;
using budget::Run;
using budget::Task;

TEST_CASE("a measure by hand") {
  // a of 4 bytes; b of 8 from a; c of 8 in the memory of b; d of 2 from a and c, with 3 bytes of scratch.
  budget::Problem problem;
  problem.blocks = {{4}, {8}, {8}, {2, true}};
  problem.tasks = {{.results = {0}, .cost = 1, .until = 3},
                   {.operands = {0}, .results = {1}, .cost = 5},
                   {.operands = {1}, .results = {2}, .overlays = {{0, 0}}, .cost = 7},
                   {.operands = {0, 2}, .results = {3}, .scratch = 3, .cost = 9}};
  const budget::Measure plain = budget::measure(problem, budget::plain_runs(problem));
  CHECK(plain.peak == 4 + 8 + 2 + 3);
  CHECK(plain.at == 3);
  CHECK(plain.cost == 0);
  CHECK(budget::held_bytes(problem, budget::plain_runs(problem)) == std::vector<int64_t>{4, 12, 12, 17});
  CHECK(budget::blocks_held(problem, budget::plain_runs(problem), 2) == std::vector<int32_t>{0, 1});
  CHECK(budget::blocks_held(problem, budget::plain_runs(problem), 3) == std::vector<int32_t>{0, 2, 3});
  problem.tasks[2].scratch = 9;
  CHECK(budget::measure(problem, budget::plain_runs(problem)).peak == 4 + 8 + 9);
  // a is made again for d: it is not there while c is made.
  const std::vector<Run> again{{0}, {1}, {2}, {0}, {3}};
  CHECK(random_problem::fault(problem, again).empty());
  const budget::Measure found = budget::measure(problem, again);
  CHECK(found.peak == 8 + 9);
  CHECK(found.at == 2);
  CHECK(found.cost == 1);
  CHECK(budget::least_bytes(problem) == 8 + 9);
}

TEST_CASE("the exact solver finds what brute force finds") {
  int with_choice = 0, infeasible = 0;
  for (uint32_t seed = 1; seed <= 5000; ++seed) {
    const budget::Problem problem = random_problem::make(seed, 4 + static_cast<int>(seed % 11));
    const int64_t most = budget::measure(problem, budget::plain_runs(problem)).peak;
    with_choice += budget::candidates_of(problem).blocks.size() > 1;
    for (int64_t cap = most; cap > most * 2 / 3; cap -= 1 + most / 10) {
      const std::optional<double> expected = brute_force::least_cost(problem, cap);
      const std::optional<budget::ExactPlan> found = budget::exact_plan(problem, cap, 1 << 20);
      INFO("seed " << seed << ", cap " << cap);
      REQUIRE(found.has_value() == expected.has_value());
      infeasible += !found;
      if (!found) continue;
      REQUIRE(found->is_optimal);
      REQUIRE(random_problem::fault(problem, found->runs).empty());
      const budget::Measure measured = budget::measure(problem, found->runs);
      REQUIRE(measured.peak <= cap);
      REQUIRE(measured.cost == *expected);
    }
  }
  CHECK(with_choice > 2000);
  CHECK(infeasible > 1000);
}

TEST_CASE("greedy plans are plans, within their cap") {
  int with_copies = 0;
  for (uint32_t seed = 1; seed <= 2000; ++seed) {
    const budget::Problem problem = random_problem::make(seed, 6 + static_cast<int>(seed % 55));
    const int64_t most = budget::measure(problem, budget::plain_runs(problem)).peak;
    CHECK(budget::greedy_plan(problem, most) == budget::plain_runs(problem));
    for (int64_t cap = most; cap >= budget::least_bytes(problem); cap -= 1 + most / 12) {
      const std::optional<std::vector<Run>> runs = budget::greedy_plan(problem, cap);
      if (!runs) continue;
      INFO("seed " << seed << ", cap " << cap);
      REQUIRE(random_problem::fault(problem, *runs).empty());
      REQUIRE(budget::measure(problem, *runs).peak <= cap);
      with_copies += runs->size() > problem.tasks.size();
    }
  }
  CHECK(with_copies > 3000);
}

TEST_CASE("a chain of a hundred layers in little memory") {
  const budget::Problem problem = chain_problem::make(100);
  CHECK(budget::measure(problem, budget::plain_runs(problem)).peak == 101);
  const budget::Curve curve = budget::greedy_curve(problem);
  const auto cost_within = [&](int64_t bytes) {
    return curve[budget::plan_within(curve, bytes)].measure.cost;
  };
  CHECK(cost_within(30) <= 110);  // a little more than each layer once more
  CHECK(cost_within(16) <= 280);
  CHECK(curve.back().measure.peak <= 8);
}

TEST_CASE("a curve falls in its peak and rises in its cost") {
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    const budget::Problem problem = random_problem::make(seed, 8 + static_cast<int>(seed % 30));
    for (const budget::Solver& solver : budget::kSolvers) {
      const budget::Curve curve = solver.curve(problem);
      REQUIRE(curve[0].runs == budget::plain_runs(problem));
      for (size_t i = 0; i < curve.size(); ++i) {
        REQUIRE(random_problem::fault(problem, curve[i].runs).empty());
        REQUIRE(curve[i].measure.peak >= budget::least_bytes(problem));
        CHECK(budget::plan_within(curve, curve[i].measure.peak) == i);
        if (i == 0) continue;
        REQUIRE(curve[i].measure.peak < curve[i - 1].measure.peak);
        REQUIRE(curve[i].measure.cost > curve[i - 1].measure.cost);
      }
    }
  }
}

// What is above are costs of a few units, which no plan of the curve meets.
TEST_CASE("the default is within 3 percent of the exact solver's peak at equal cost") {
  int compared = 0, above = 0;
  for (uint32_t seed = 1; seed <= 100; ++seed) {
    const budget::Problem problem = random_problem::make(seed, 20 + static_cast<int>(seed));
    if (budget::candidates_of(problem).blocks.size() > budget::kFewCandidates) continue;
    const budget::Curve found = budget::default_curve(problem);
    for (int part : {9, 8, 7, 6}) {
      const std::optional<budget::ExactPlan> exact =
          budget::exact_plan(problem, found[0].measure.peak * part / 10, 5000);
      if (!exact) continue;
      const budget::Measure best = budget::measure(problem, exact->runs);
      const auto at_cost = [&](const budget::Plan& plan) { return plan.measure.cost <= best.cost; };
      const auto end = std::ranges::partition_point(found, at_cost);
      ++compared;
      above += static_cast<double>(std::prev(end)->measure.peak) > 1.03 * static_cast<double>(best.peak);
    }
  }
  CHECK(compared > 250);
  CHECK(above * 100 <= compared);
}

TEST_CASE("repaired plans are within their caps") {
  int with_copies = 0;
  for (uint32_t seed = 1; seed <= 100; ++seed) {
    const budget::Problem problem = random_problem::make(seed, 6 + static_cast<int>(seed % 55));
    const int64_t most = budget::measure(problem, budget::plain_runs(problem)).peak;
    const std::vector<int64_t> caps{most, most * 9 / 10, most * 8 / 10, most * 7 / 10};
    const std::vector<std::vector<Run>> plans = budget::repaired_plans(problem, caps);
    REQUIRE(!plans.empty());
    CHECK(plans[0] == budget::plain_runs(problem));
    for (size_t i = 0; i < plans.size(); ++i) {
      INFO("seed " << seed << ", cap " << caps[i]);
      REQUIRE(random_problem::fault(problem, plans[i]).empty());
      REQUIRE(budget::measure(problem, plans[i]).peak <= caps[i]);
      with_copies += plans[i].size() > problem.tasks.size();
    }
  }
  CHECK(with_copies > 100);
}

TEST_CASE("the default is as good as each of greedy, cut and dp") {
  std::vector<budget::Problem> problems{chain_problem::make(40)};
  for (uint32_t seed = 1; seed <= 20; ++seed) problems.push_back(random_problem::make(seed, 150));
  for (const budget::Problem& problem : problems) {
    const budget::Curve best = budget::default_curve(problem);
    for (const auto curve_of : {budget::greedy_curve, budget::cut_curve, budget::dp_curve})
      for (const budget::Plan& plan : curve_of(problem)) {
        const budget::Measure found = best[budget::plan_within(best, plan.measure.peak)].measure;
        CHECK(found.peak <= plan.measure.peak);
        CHECK(found.cost <= plan.measure.cost);
      }
  }
}

TEST_CASE("copies that cost nothing leave the plan without copies in its place") {
  budget::Problem problem = chain_problem::make(10);
  for (Task& task : problem.tasks) task.cost = 0;
  for (const budget::Solver& solver : budget::kSolvers) {
    INFO(solver.name);
    const budget::Curve curve = solver.curve(problem);
    CHECK(curve[0].runs == budget::plain_runs(problem));
    for (size_t i = 1; i < curve.size(); ++i) CHECK(curve[i].measure.peak < curve[i - 1].measure.peak);
  }
  CHECK(budget::dp_curve(problem).back().measure.peak == 3);
}

TEST_CASE("what no run reads of a plan's copies goes") {
  // Task 0 makes two blocks; a copy of it for task 2 is read of one, a copy behind that of none.
  budget::Problem problem;
  problem.blocks = {{1}, {1}, {1}, {1, true}};
  problem.tasks = {{.results = {0, 1}, .cost = 1, .until = 2},
                   {.operands = {0, 1}, .results = {2}, .cost = 1, .until = 2},
                   {.operands = {1, 2}, .results = {3}, .cost = 1}};
  const std::vector<Run> expected{{0}, {1}, {0, ~uint64_t{1}}, {2}};
  CHECK(budget::without_unread(problem, {{0}, {1}, {0}, {2}, {0}}) == expected);
  CHECK(budget::without_unread(problem, budget::plain_runs(problem)) == budget::plain_runs(problem));
}

TEST_CASE("nothing to do has one plan") {
  for (const budget::Solver& solver : budget::kSolvers) {
    INFO(solver.name);
    const budget::Curve curve = solver.curve({});
    REQUIRE(curve.size() == 1);
    CHECK(curve[0].runs.empty());
    CHECK(curve[0].measure.peak == 0);
  }
}

TEST_CASE("solvers have names") {
  CHECK(budget::find_solver("exact")->curve == budget::exact_curve);
  CHECK(budget::find_solver("ilp") == nullptr);
}
