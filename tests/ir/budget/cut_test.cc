// Minimum cuts against brute force, and the plans of the convex hull of bytes saved and costs of what is made again.
#include <catch2/catch.hpp>
#include <optional>

#include "ir/budget/cut.h"
#include "ir/budget/exact.h"
#include "ir/budget/flow.h"
#include "ir/budget/solve.h"
#include "tests/ir/budget/random_problem.h"

namespace budget = retrograd::ir::budget;
using budget::Flow;
using budget::Task;

namespace {

struct Point {
  double bytes, cost;
  bool operator<(const Point& other) const {
    return cost != other.cost ? cost < other.cost : bytes < other.bytes;
  }
  bool operator==(const Point&) const = default;
};

// What a plan saves that makes these tasks again, each once, for the late tasks; nothing if one of them may not.
std::optional<Point> point_of(const budget::Problem& problem, int32_t late, const std::vector<bool>& again) {
  Point point{0, 0};
  std::vector<bool> is_needed(problem.blocks.size());
  for (size_t t = 0; t < problem.tasks.size(); ++t) {
    const Task& task = problem.tasks[t];
    if (t < budget::at(late) && !again[t]) continue;
    for (int32_t b : task.operands) is_needed[budget::at(b)] = true;
    if (t >= budget::at(late)) continue;
    if (task.until == Task::kNever) return {};
    point.cost += task.cost;
  }
  for (size_t t = 0; t < budget::at(late); ++t)
    for (int32_t b : problem.tasks[t].results)
      if (is_needed[budget::at(b)] && !again[t] && !problem.blocks[budget::at(b)].to_end)
        point.bytes += static_cast<double>(problem.blocks[budget::at(b)].bytes);
  return point;
}

// The vertices of the lower hull of all such plans, by rising cost.
std::vector<Point> hull_by_brute_force(const budget::Problem& problem, int32_t late) {
  std::vector<Point> all, hull;
  for (uint32_t set = 0; set < uint32_t{1} << late; ++set) {
    std::vector<bool> again(budget::at(late));
    for (size_t t = 0; t < again.size(); ++t) again[t] = (set >> t & 1) != 0;
    if (const std::optional<Point> point = point_of(problem, late, again)) all.push_back(*point);
  }
  std::ranges::sort(all, std::less());
  for (const Point& p : all) {
    if (!hull.empty() && p.bytes >= hull.back().bytes) continue;
    while (hull.size() > 1) {
      const Point &a = hull[hull.size() - 2], &b = hull.back();
      if ((a.bytes - b.bytes) * (p.cost - b.cost) > (b.bytes - p.bytes) * (b.cost - a.cost)) break;
      hull.pop_back();
    }
    hull.push_back(p);
  }
  return hull;
}

}  // namespace

TEST_CASE("a maximum flow is the capacity of the least cut, which it gives") {
  int with_flow = 0;
  for (uint32_t seed = 1; seed <= 400; ++seed) {
    std::mt19937 random(seed);
    const auto nodes = 3 + random() % 6;
    std::vector<std::array<int32_t, 3>> edges;
    Flow flow(static_cast<int32_t>(nodes));
    for (size_t i = 0; i < 3 * nodes; ++i) {
      edges.push_back({static_cast<int32_t>(random() % nodes), static_cast<int32_t>(random() % nodes),
                       static_cast<int32_t>(random() % 20)});
      const int32_t number = flow.add_edge(edges.back()[0], edges.back()[1], 0);
      flow.set_capacity(number, edges.back()[2]);
    }
    const auto capacity = [&](auto is_with_source) {
      int64_t sum = 0;
      for (const auto& [from, to, most] : edges)
        if (is_with_source(from) && !is_with_source(to)) sum += most;
      return sum;
    };
    int64_t least = std::numeric_limits<int64_t>::max();
    for (uint32_t set = 0; set < uint32_t{1} << nodes; ++set)
      if ((set >> Flow::kSource & 1) != 0 && (set >> Flow::kSink & 1) == 0)
        least = std::min(least, capacity([&](int32_t node) { return (set >> node & 1) != 0; }));
    INFO("seed " << seed);
    REQUIRE(flow.run() == least);
    REQUIRE(capacity([&](int32_t node) { return flow.is_with_source(node); }) == least);
    with_flow += least > 0;
  }
  CHECK(with_flow > 200);
}

TEST_CASE("the plans of cuts are the vertices of the hull") {
  int vertices = 0;
  for (uint32_t seed = 1; seed <= 400; ++seed) {
    const budget::Problem problem = random_problem::make(seed, 6 + static_cast<int>(seed % 15));
    const int32_t late = budget::candidates_of(problem).late;
    if (late > 12) continue;
    INFO("seed " << seed);
    std::vector<Point> found{*point_of(problem, late, std::vector<bool>(budget::at(late)))};
    for (const std::vector<budget::Run>& runs : budget::cut_plans(problem, 100)) {
      REQUIRE(random_problem::fault(problem, runs).empty());
      std::vector<bool> again(budget::at(late)), has_run(problem.tasks.size());
      for (const budget::Run& run : runs) {
        if (has_run[budget::at(run.task)]) {
          REQUIRE(run.task < late);
          REQUIRE(!again[budget::at(run.task)]);  // once
          again[budget::at(run.task)] = true;
        }
        has_run[budget::at(run.task)] = true;
      }
      found.push_back(*point_of(problem, late, again));
      REQUIRE(found.back().cost == budget::measure(problem, runs).cost);
    }
    REQUIRE(found == hull_by_brute_force(problem, late));
    vertices += static_cast<int>(found.size());
  }
  CHECK(vertices > 600);
}

TEST_CASE("what several values are made from is paid for once") {
  // a (cost 10) is read by b and c (cost 1 each), of ten bytes each; the late task reads both. Tasks 3 and 4 hold the
  // peak. To make b and c again costs 12, since a is made once for both.
  budget::Problem problem;
  problem.blocks = {{20}, {10}, {10}, {50}, {1}, {1, true}};
  problem.tasks = {{.results = {0}, .cost = 10, .until = 5},
                   {.operands = {0}, .results = {1}, .cost = 1, .until = 5},
                   {.operands = {0}, .results = {2}, .cost = 1, .until = 5},
                   {.operands = {}, .results = {3}, .cost = 1},
                   {.operands = {3}, .results = {4}, .cost = 1},
                   {.operands = {1, 2, 4}, .results = {5}, .cost = 1}};
  const std::vector<std::vector<budget::Run>> plans = budget::cut_plans(problem, 10);
  REQUIRE(plans.size() == 1);
  const std::vector<budget::Run> expected{{0}, {1}, {2}, {3}, {4}, {0, 1}, {2, 1}, {1, 1}, {5}};
  CHECK(plans[0] == expected);
  CHECK(budget::measure(problem, plans[0]).cost == 12);
}
