// BudgetTasks: a graph as a problem of a memory budget (ir/budget/problem.h), and the graph of a plan.
//
// A task is a group of nodes with a kernel, or another node, in the order of the graph. A block is the memory of a
// value that a task makes, with all its views; `contiguous` of such a value counts with it, as a copy. A view is no
// task: it goes to where a task reads it, and follows when its value is made again.
//
// A pure task may run again, also one that draws: it has its seed and offset. A node that reads memory which code
// outside may reach runs again only before the next effect (ir/passes/memory_classes.h), and one that reads memory to
// which a value is written only up to the node that makes the value. Updates of an optimizer and host code run once.
//
// A graph may run in two parts (ir::Boundary). Then a plan keeps each task in its part: copies that come behind the
// last task of the first part belong to the second. Outputs of the first part exist at the boundary, and what they hold
// is not made again behind it. The second part looks at memory of the first through views of its own, so what passes
// the boundary is what nodes make that are no views.
//
// Limits: at the sizes given. A problem is exact but for `contiguous`, of which it is an upper bound.
#pragma once

#include <functional>
#include <optional>

#include "ir/budget/problem.h"
#include "ir/passes/lifetimes.h"
#include "ir/passes/pass.h"
#include "ir/rewriter.h"
#include "ir/splice.h"

namespace retrograd::inline v0::ir {

/// The time that a node takes, in any unit.
using NodeCost = std::function<double(const Graph& graph, const Node& node)>;

struct BudgetTasks {
  struct Nodes {
    std::vector<uint32_t> numbers;
    std::vector<ValueId> results;  // parallel to those of the task
    bool is_group;
  };
  budget::Problem problem;
  std::vector<Nodes> nodes;       // of each task
  std::vector<int32_t> task_of;   // of each node; -1: a view
  std::vector<int32_t> block_of;  // of each value; -1: none
  // Of a graph that runs in two parts: what the first one has.
  std::optional<Boundary> boundary = {};
  int32_t first_tasks = 0;
};

/// `input`: with an executor. `boundary`: of a graph that runs in two parts.
BudgetTasks budget_tasks(const Graph& graph, const PassInput& input, const NodeCost& cost,
                         const std::optional<Boundary>& boundary = {});

/// Makes the graph one that runs like this. Returns its boundary; nothing if it runs as a whole.
std::optional<Boundary> with_runs(Graph& graph, const BudgetTasks& tasks, std::span<const budget::Run> runs);

}  // namespace retrograd::ir
