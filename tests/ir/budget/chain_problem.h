// Chains of layers as problems of a memory budget, and what Griewank and Walther found of them.
#pragma once

#include "ir/budget/problem.h"

namespace chain_problem {

namespace budget = retrograd::ir::budget;

/// n layers of one byte and one unit of cost each: forward, a loss, and a backward that reads the gradient and the
/// layer's input.
inline budget::Problem make(int n) {
  budget::Problem problem;
  const int all = 2 * n + 1;
  for (int t = 0; t < all; ++t) {
    budget::Task task{.operands = {}, .results = {t}, .cost = 1, .until = all};
    if (t > 0) task.operands.push_back(t - 1);
    if (t > n && 2 * n - t > 0) task.operands.push_back(2 * n - t - 1);
    problem.tasks.push_back(task);
    problem.blocks.push_back({1, t + 1 == all});
  }
  return problem;
}

/// The fewest steps beyond a first sweep that run n steps in reverse with so many checkpoints, that of the begin among
/// them: r n - C(c + r, c + 1) steps in all, n - 1 of them in the first sweep, with the least r of C(c + r, c) >= n.
inline double revolve(int n, int checkpoints) {
  const auto choose = [](int of, int k) {
    double ways = 1;
    for (int i = 1; i <= k; ++i) ways = ways * (of - k + i) / i;
    return ways;
  };
  int r = 1;
  while (choose(checkpoints + r, checkpoints) < n) ++r;
  return r * n - choose(checkpoints + r, checkpoints + 1) - (n - 1);
}

}  // namespace chain_problem
