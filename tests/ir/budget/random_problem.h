// Random problems of a memory budget, and what must hold of every plan.
#pragma once

#include <algorithm>
#include <random>
#include <string>

#include "ir/budget/problem.h"

namespace random_problem {

namespace budget = retrograd::ir::budget;

/// A graph of `nodes` tasks as a training step has it: tasks of a forward, then as many of a backward, each of which
/// reads the gradient before it and some values of the forward.
inline budget::Problem make(uint32_t seed, int nodes) {
  std::mt19937 random(seed);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<uint32_t>(n)); };
  budget::Problem problem;
  const int forward = std::max(1, nodes / 2 + below(2));
  for (int t = 0; t < nodes; ++t) {
    budget::Task task{.scratch = below(4) ? 0 : 1 + below(8), .cost = 1.0 + below(9), .until = nodes};
    const auto read = [&](int block) {
      if (!std::ranges::count(task.operands, block)) task.operands.push_back(block);
    };
    if (t > 0) read(t - 1);
    if (t >= forward) read(std::max(0, 2 * forward - 1 - t));
    for (int more = below(3); more > 0 && t > 0; --more) read(below(std::min(t, forward)));
    task.results.push_back(t);
    problem.blocks.push_back({1 + below(16), t + 1 == nodes || below(10) == 0});
    if (!task.operands.empty() && below(2) == 0) {
      const int operand = below(static_cast<int>(task.operands.size()));
      problem.blocks.back().bytes =
          problem.blocks[static_cast<size_t>(task.operands[static_cast<size_t>(operand)])].bytes;
      task.overlays.push_back({0, operand});
    }
    if (below(8) == 0) task.until = budget::Task::kNever;
    problem.tasks.push_back(std::move(task));
  }
  return problem;
}

/// Nothing, or what is wrong with a plan.
inline std::string fault(const budget::Problem& problem, const std::vector<budget::Run>& runs) {
  std::vector<bool> is_made(problem.blocks.size());
  int32_t next = 0;  // of the order
  for (const budget::Run& run : runs) {
    const budget::Task& task = problem.tasks[static_cast<size_t>(run.task)];
    if (run.task == next)
      ++next;
    else if (run.task > next || task.until < next)
      return "task " + std::to_string(run.task) + " may not run before task " + std::to_string(next);
    for (int32_t b : task.operands)
      if (!is_made[static_cast<size_t>(b)]) return "block " + std::to_string(b) + " is not there";
    for (int32_t b : task.results) is_made[static_cast<size_t>(b)] = true;
  }
  return next == static_cast<int32_t>(problem.tasks.size()) ? "" : "some tasks have not run";
}

}  // namespace random_problem
