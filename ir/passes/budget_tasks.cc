// See ir/passes/budget_tasks.h; start reading at TaskFinder::run().
#include "ir/passes/budget_tasks.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "ir/passes/node_copies.h"
#include "ir/passes/reorder.h"

namespace retrograd::inline v0::ir {
namespace {

using budget::Task;

// A node whose result may share its operand's memory.
bool follows(const Node& node) { return node.op->is(Trait::pure) && !makes_memory(*node.op); }

class TaskFinder {
 public:
  TaskFinder(const Graph& graph, const PassInput& input, const NodeCost& cost,
             const std::optional<Boundary>& boundary)
      : graph_(graph),
        input_(input),
        cost_(cost),
        groups_(graph, *input.executor, input.values),
        classes_(graph),
        apart_(lifetimes(graph, {.values = input.values,
                                 .writes = input.writes,
                                 .given = input.given,
                                 .groups = &groups_,
                                 .in_place = false})) {
    found_.boundary = boundary;
  }

  BudgetTasks run() {
    found_.task_of.assign(graph_.nodes().size(), -1);
    found_.block_of.assign(at(graph_.value_count()), -1);
    const Units units(graph_);
    for (size_t u = 0; u < units.size(); ++u) add_unit(units, static_cast<int32_t>(u));
    if (found_.boundary) found_.first_tasks = tasks_below(found_.boundary->nodes);
    find_ends();
    for (size_t t = 0; t < found_.nodes.size(); ++t) {
      find_overlays(t);
      problem().tasks[t].until = until(t);
    }
    return std::move(found_);
  }

 private:
  static size_t at(int32_t i) { return static_cast<size_t>(i); }
  budget::Problem& problem() { return found_.problem; }
  int32_t block(ValueId v) const { return v == kNoValue ? -1 : found_.block_of[at(v)]; }
  const Node& node(uint32_t number) const { return graph_.nodes()[number]; }

  void add_unit(const Units& units, int32_t unit) {
    std::vector<uint32_t> numbers;
    for (int32_t n = units.begins[at(unit)]; n <= units.last_node(unit); ++n)
      numbers.push_back(static_cast<uint32_t>(n));
    if (const GroupMemory* group = numbers.size() > 1 ? &groups_.of(numbers) : nullptr;
        group && group->kernel)
      return add_task(numbers, group->inputs, group->outputs, group->scratch_bytes, true);
    for (uint32_t n : numbers) add_node(n);
  }

  void add_node(uint32_t number) {
    const Node& one = node(number);
    const auto operands = graph_.operands(one);
    if (follows(one) && one.operands == 1 && (one.op->is(Trait::view) || block(operands[0]) >= 0))
      return follow(one, operands[0]);
    std::vector<ValueId> results;
    for (int r = 0; r < one.results; ++r) results.push_back(one.first_result + r);
    add_task({&number, 1}, operands, results, groups_.kernel_scratch_bytes(number), false);
  }

  int32_t tasks_below(size_t number) const {
    const auto is_below = [&](const BudgetTasks::Nodes& nodes) { return nodes.numbers[0] < number; };
    return static_cast<int32_t>(std::ranges::partition_point(found_.nodes, is_below) - found_.nodes.begin());
  }

  // The result counts with the block of the operand, as does a copy that it may be.
  void follow(const Node& one, ValueId operand) {
    const int32_t own = apart_.block_of[at(one.first_result)], b = block(operand);
    for (int r = 0; r < one.results; ++r) found_.block_of[at(one.first_result + r)] = b;
    if (!one.op->is(Trait::view) && b >= 0 && own >= 0)
      problem().blocks[at(b)].bytes += apart_.blocks[at(own)].bytes;
  }

  void add_task(std::span<const uint32_t> numbers, std::span<const ValueId> operands,
                std::span<const ValueId> results, int64_t scratch, bool is_group) {
    Task task{.scratch = scratch, .makes_all = !is_group};
    BudgetTasks::Nodes nodes{{numbers.begin(), numbers.end()}, {}, is_group};
    for (ValueId v : operands)
      if (const int32_t b = block(v); b >= 0 && !std::ranges::count(task.operands, b))
        task.operands.push_back(b);
    for (ValueId v : results) {
      const int32_t own = apart_.block_of[at(v)];
      if (own < 0) continue;
      found_.block_of[at(v)] = static_cast<int32_t>(problem().blocks.size());
      task.results.push_back(found_.block_of[at(v)]);
      nodes.results.push_back(v);
      problem().blocks.push_back({apart_.blocks[at(own)].bytes});
    }
    for (uint32_t n : numbers) {
      task.cost += cost_(graph_, node(n));
      found_.task_of[n] = static_cast<int32_t>(found_.nodes.size());
    }
    problem().tasks.push_back(std::move(task));
    found_.nodes.push_back(std::move(nodes));
  }

  // What outside code gets is live to the end.
  void find_ends() {
    const auto to_end = [&](ValueId v) {
      if (const int32_t b = block(v); b >= 0) problem().blocks[at(b)].to_end = true;
    };
    for (ValueId v : graph_.outputs()) to_end(v);
    for (const Node& one : graph_.nodes())
      if (!one.op->is(Trait::pure) && one.results == 0)
        for (ValueId v : graph_.operands(one)) to_end(v);
  }

  void find_overlays(size_t number) {
    Task& task = problem().tasks[number];
    const BudgetTasks::Nodes& nodes = found_.nodes[number];
    const Node& one = node(nodes.numbers[0]);
    const std::span<const ValueId> operands =
        nodes.is_group ? std::span<const ValueId>(groups_.of(nodes.numbers).inputs) : graph_.operands(one);
    if (!nodes.is_group && (!makes_memory(*one.op) || one.results != 1)) return;
    for (size_t r = 0; r < nodes.results.size(); ++r)
      for (size_t o = 0; o < operands.size(); ++o)
        if (may_lie(nodes, operands, o, nodes.results[r]))
          task.overlays.push_back({static_cast<int32_t>(r),
                                   static_cast<int32_t>(std::ranges::find(task.operands, block(operands[o])) -
                                                        task.operands.begin())});
  }

  // As in ir/passes/lifetimes.h: over a value itself that no other operand is a view of.
  bool may_lie(const BudgetTasks::Nodes& nodes, std::span<const ValueId> operands, size_t o, ValueId result) {
    const ValueId v = operands[o];
    if (block(v) < 0 || !classes_.is_private(v) || is_view(v) ||
        graph_.type_index(v) != graph_.type_index(result))
      return false;
    for (ValueId other : operands)
      if (other != v && block(other) == block(v)) return false;
    return nodes.is_group ? groups_.of(nodes.numbers).may_overwrite(v, result)
                          : may_lie_over(*node(nodes.numbers[0]).op, operands, o, 0);
  }
  bool is_view(ValueId v) {
    if (producer_.empty()) producer_ = producers_of(graph_);
    return producer_[at(v)] < 0 || found_.task_of[at(producer_[at(v)])] < 0;
  }

  // The last task before which a task may run again.
  int32_t until(size_t number) {
    const BudgetTasks::Nodes& nodes = found_.nodes[number];
    int32_t until = static_cast<int32_t>(found_.nodes.size());
    if (nodes.results.size() > Task::kMostResults) return Task::kNever;
    for (ValueId v : nodes.results) {
      if (!classes_.is_private(v)) return Task::kNever;
      if (std::cmp_less(number, found_.first_tasks) && problem().blocks[at(block(v))].to_end)
        until = found_.first_tasks - 1;
    }
    for (uint32_t n : nodes.numbers) {
      const OpInfo& op = *node(n).op;
      if (!op.is(Trait::pure) || op.is(Trait::updates) || op.run_on_host) return Task::kNever;
      for (ValueId v : graph_.operands(node(n)))
        if (v != kNoValue && !classes_.is_private(v)) until = std::min(until, last_read(v, n));
    }
    return until;
  }

  // The last task before which node `n` may read memory that outside code may reach.
  int32_t last_read(ValueId v, uint32_t n) {
    if (segment_ends_.empty()) {
      find_segment_ends();
      find_writers();
    }
    const auto writer = writers_.find(classes_.representative(v));
    const int32_t end = segment_ends_[at(classes_.segment(n))];
    return writer == writers_.end() ? end : std::min(end, writer->second);
  }
  void find_segment_ends() {
    segment_ends_.assign(at(classes_.segment(graph_.nodes().size() - 1)) + 2, 0);
    for (size_t n = 0; n < graph_.nodes().size(); ++n)
      if (const int32_t t = found_.task_of[n]; t >= 0) segment_ends_[at(classes_.segment(n))] = t;
  }
  // Of inputs to which a value is written: the task that makes it.
  void find_writers() {
    const std::vector<int32_t> producer = producers_of(graph_);
    for (const OutsideWrite& w : input_.writes) {
      const int32_t made = producer[at(graph_.outputs()[at(w.output)])];
      if (made < 0 || found_.task_of[at(made)] < 0) continue;
      const ValueId memory = classes_.representative(graph_.inputs()[at(w.input)].value);
      const auto [it, is_new] = writers_.try_emplace(memory, found_.task_of[at(made)]);
      if (!is_new) it->second = std::min(it->second, found_.task_of[at(made)]);
    }
  }

  const Graph& graph_;
  const PassInput& input_;
  const NodeCost& cost_;
  GroupMemories groups_;
  MemoryClasses classes_;
  const Lifetimes apart_;
  std::vector<int32_t> producer_, segment_ends_;
  std::unordered_map<ValueId, int32_t> writers_;
  BudgetTasks found_;
};

}  // namespace

BudgetTasks budget_tasks(const Graph& graph, const PassInput& input, const NodeCost& cost,
                         const std::optional<Boundary>& boundary) {
  return TaskFinder(graph, input, cost, boundary).run();
}

}  // namespace retrograd::ir
