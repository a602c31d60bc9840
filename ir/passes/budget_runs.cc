// The graph of a plan: see ir/passes/budget_tasks.h; start reading at PlanWriter::write().
//
// Runs are written one by one. The first run of a task keeps its nodes; a copy has new nodes, and from then on the
// values that it is run for are those of the copy. Views are written when a run reads them, again where their memory
// is another.
#include <algorithm>
#include <unordered_set>

#include "ir/passes/budget_tasks.h"
#include "ir/passes/node_copies.h"

namespace retrograd::inline v0::ir {
namespace {

class PlanWriter {
 public:
  PlanWriter(Graph& graph, const BudgetTasks& tasks)
      : graph_(graph),
        tasks_(tasks),
        rewriter_(graph),
        producer_(producers_of(graph)),
        made_(tasks.problem.blocks.size()),
        seen_(producer_.size(), -1),
        has_run_(tasks.nodes.size()) {}

  std::optional<Boundary> write(std::span<const budget::Run> runs) {
    if (tasks_.boundary && tasks_.first_tasks == 0) end_first_part();
    for (const budget::Run& run : runs) {
      const BudgetTasks::Nodes& nodes = tasks_.nodes[at(run.task)];
      const std::vector<uint32_t> numbers = has_run_[at(run.task)] ? nodes_for(nodes, run) : nodes.numbers;
      for (uint32_t n : numbers)
        for (ValueId v : graph_.operands(graph_.nodes()[n])) look(v);
      if (has_run_[at(run.task)])
        copy(nodes, numbers, run);
      else
        for (uint32_t n : numbers) rewriter_.keep(n);
      note_group(nodes.is_group ? numbers.size() : 0);
      for (size_t i = 0; i < nodes.results.size(); ++i) made_[at(block(nodes.results[i]))] += run.makes(i);
      if (!has_run_[at(run.task)] && run.task + 1 == tasks_.first_tasks) end_first_part();
      has_run_[at(run.task)] = true;
    }
    finish();
    return boundary_;
  }

 private:
  // Its outputs exist. What follows looks through views of its own.
  void end_first_part() {
    boundary_ = tasks_.boundary;
    for (ValueId v : std::span(graph_.outputs()).first(boundary_->outputs)) {
      look(v);
      first_outputs_.push_back(rewriter_.now(v));
    }
    boundary_->nodes = rewriter_.nodes().size();
    std::ranges::fill(seen_, -1);
  }

  void finish() {
    for (ValueId v : std::span(graph_.outputs()).subspan(first_outputs_.size())) look(v);
    rewriter_.finish();
    std::vector<ValueId> outputs = graph_.outputs();
    std::ranges::copy(first_outputs_, outputs.begin());
    graph_.set_outputs(std::move(outputs));
    group_.resize(graph_.nodes().size(), -1);
    for (size_t n = 0; n < group_.size(); ++n) graph_.set_group(n, group_[n]);
  }

  static size_t at(int32_t i) { return static_cast<size_t>(i); }
  int32_t block(ValueId v) const { return tasks_.block_of[at(v)]; }
  bool is_view(ValueId v) const { return producer_[at(v)] >= 0 && tasks_.task_of[at(producer_[at(v)])] < 0; }

  // Writes the views that lead to a value, unless they are there and of the memory that is made last.
  void look(ValueId v) {
    std::vector<ValueId> chain;
    for (; v != kNoValue && is_view(v); v = graph_.operands(graph_.nodes()[at(producer_[at(v)])])[0])
      chain.push_back(v);
    while (!chain.empty()) {
      const ValueId view = chain.back();
      chain.pop_back();
      const int32_t now = block(view) < 0 ? 0 : made_[at(block(view))];
      if (std::exchange(seen_[at(view)], now) == now) continue;
      const auto number = static_cast<uint32_t>(producer_[at(view)]);
      if (rewriter_.now(view) == kNoValue)
        rewriter_.keep(number);
      else
        rewriter_.replace(view, append(number, {}));
    }
  }

  // The nodes of a task that are needed for a copy.
  std::vector<uint32_t> nodes_for(const BudgetTasks::Nodes& nodes, const budget::Run& run) const {
    std::unordered_set<ValueId> needed;
    for (size_t i = 0; i < nodes.results.size(); ++i)
      if (run.makes(i)) needed.insert(nodes.results[i]);
    std::vector<uint32_t> numbers;
    for (size_t i = nodes.numbers.size(); i-- > 0;) {
      const Node& node = graph_.nodes()[nodes.numbers[i]];
      bool is_needed = false;
      for (int r = 0; r < node.results; ++r) is_needed |= needed.contains(node.first_result + r);
      if (!is_needed) continue;
      numbers.push_back(nodes.numbers[i]);
      for (ValueId v : graph_.operands(node)) needed.insert(v);
    }
    std::ranges::reverse(numbers);
    return numbers;
  }

  void copy(const BudgetTasks::Nodes& nodes, const std::vector<uint32_t>& numbers, const budget::Run& run) {
    std::unordered_map<ValueId, ValueId> inside;
    for (uint32_t n : numbers) {
      const Node& node = graph_.nodes()[n];
      const ValueId first = append(n, inside);
      for (int r = 0; r < node.results; ++r) inside[node.first_result + r] = first + r;
    }
    for (size_t i = 0; i < nodes.results.size(); ++i)
      if (run.makes(i)) rewriter_.replace(nodes.results[i], inside.at(nodes.results[i]));
  }

  // The first result of a copy of a node. `inside`: values that the same run has made.
  ValueId append(uint32_t number, const std::unordered_map<ValueId, ValueId>& inside) {
    const Node& node = graph_.nodes()[number];
    std::vector<ValueId> operands;
    for (ValueId v : graph_.operands(node)) {
      const auto it = inside.find(v);
      operands.push_back(it == inside.end() ? rewriter_.now(v) : it->second);
    }
    std::vector<TensorType> types;
    for (int r = 0; r < node.results; ++r) types.push_back(graph_.type(node.first_result + r));
    return rewriter_.append(*node.op, operands, node.attrs, types, node).first_result;
  }

  // The last `nodes` nodes are a group; one alone is none.
  void note_group(size_t nodes) {
    if (nodes < 2) return;
    group_.resize(rewriter_.nodes().size() - nodes, -1);
    group_.resize(rewriter_.nodes().size(), groups_++);
  }

  Graph& graph_;
  const BudgetTasks& tasks_;
  Rewriter rewriter_;
  const std::vector<int32_t> producer_;
  std::vector<int32_t> made_;  // of each block: how often it has been made
  std::vector<int32_t>
      seen_;  // of each view: the number of times that its memory had been made; -1: it is not there
  std::vector<bool> has_run_;  // of each task
  std::optional<Boundary> boundary_;
  std::vector<ValueId> first_outputs_;  // new values
  std::vector<int32_t> group_;          // of each new node so far; those that are missing are in none
  int32_t groups_ = 0;
};

}  // namespace

std::optional<Boundary> with_runs(Graph& graph, const BudgetTasks& tasks, std::span<const budget::Run> runs) {
  return PlanWriter(graph, tasks).write(runs);
}

}  // namespace retrograd::ir
