// dp: chains as Griewank and Walther solve them, chains of unequal layers against greedy plans, and graphs that are no
// chains.
#include <catch2/catch.hpp>

#include "ir/budget/chain.h"
#include "ir/budget/segments.h"
#include "ir/budget/solve.h"
#include "tests/ir/budget/chain_problem.h"
#include "tests/ir/budget/random_problem.h"

namespace budget = retrograd::ir::budget;

namespace {

// A chain of layers of one to eight bytes, with costs of one to nine.
budget::Problem uneven_chain(uint32_t seed, int layers) {
  std::mt19937 random(seed);
  budget::Problem problem = chain_problem::make(layers);
  for (budget::Block& block : problem.blocks) block.bytes = 1 + random() % 8;
  for (budget::Task& task : problem.tasks) task.cost = 1.0 + random() % 9;
  return problem;
}

}  // namespace

// While a late part runs, two gradients are there, and one of the checkpoints is what it reads: the begin of the
// chain is a checkpoint, too, and no block.
TEST_CASE("a chain of equal layers has the steps of Griewank and Walther") {
  CHECK(chain_problem::revolve(100, 1) == 4950 - 99);
  CHECK(chain_problem::revolve(100, 4) == 374 - 99);
  CHECK(chain_problem::revolve(100, 20) == 178 - 99);
  const budget::Curve curve = budget::dp_curve(chain_problem::make(100));
  CHECK(curve.size() > 40);
  CHECK(curve.back().measure.peak == 3);
  for (const budget::Plan& plan : curve) {
    INFO(plan.measure.peak << " bytes");
    CHECK(plan.measure.cost == chain_problem::revolve(100, static_cast<int>(plan.measure.peak) - 2));
  }
}

TEST_CASE("a chain of unequal layers costs less than by greedy plans") {
  int compared = 0, less = 0;
  double by_dp = 0, by_greedy = 0;
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    const budget::Problem problem = uneven_chain(seed, 60);
    const budget::Curve dp = budget::dp_curve(problem), greedy = budget::greedy_curve(problem);
    const int64_t peak = dp[0].measure.peak;
    for (int part : {40, 30, 20, 15}) {
      const budget::Measure found = dp[budget::plan_within(dp, peak * part / 100)].measure,
                            other = greedy[budget::plan_within(greedy, peak * part / 100)].measure;
      INFO("seed " << seed << ", " << part << " %");
      if (other.peak > peak * part / 100) continue;
      REQUIRE(found.peak <= peak * part / 100);
      ++compared;
      less += found.cost <= other.cost;
      by_dp += found.cost;
      by_greedy += other.cost;
    }
  }
  CHECK(compared > 70);
  CHECK(less * 10 > compared * 9);
  CHECK(by_dp < 0.85 * by_greedy);
}

TEST_CASE("a chain is cut where least passes") {
  // Pairs of a wide and a narrow layer: two segments of four early tasks are cut behind a narrow one.
  budget::Problem problem = chain_problem::make(4);
  for (size_t b = 0; b < 4; ++b) problem.blocks[b].bytes = b % 2 == 0 ? 8 : 1;
  const budget::Segments chain(problem, 4, 2);
  CHECK(chain.begins == std::vector<int32_t>{0, 2, 4});
  CHECK(chain.passing(0, 1) == 1);
  CHECK(chain.segments[0].cost == 2);
  // The loss reads block 3 and task 5 block 2, both of segment 1. Task 6 reads block 1, which passes the cut before it;
  // task 7 reads block 0.
  CHECK(chain.late_begins == std::vector<int32_t>{7, 4});
  CHECK(chain.segments[0].own == 8);
  CHECK(chain.segments[0].kept == 8 + 1);
  CHECK(chain.segments[1].own == 8 + 1);
}

TEST_CASE("dp plans of graphs that are no chains are plans") {
  int with_copies = 0;
  for (uint32_t seed = 1; seed <= 300; ++seed) {
    const budget::Problem problem = random_problem::make(seed, 6 + static_cast<int>(seed % 90));
    const int64_t peak = budget::measure(problem, budget::plain_runs(problem)).peak;
    std::vector<int64_t> caps;
    for (int64_t cap = peak; cap > budget::least_bytes(problem); cap -= 1 + peak / 10) caps.push_back(cap);
    for (const std::vector<budget::Run>& runs : budget::chain_plans(problem, caps)) {
      INFO("seed " << seed);
      REQUIRE(random_problem::fault(problem, runs).empty());
      REQUIRE(budget::without_unread(problem, runs) == runs);
      with_copies += runs.size() > problem.tasks.size();
    }
  }
  CHECK(with_copies > 50);
}
