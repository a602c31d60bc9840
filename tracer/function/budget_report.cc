// See tracer/function/budget_report.h.
#include "tracer/function/budget_report.h"

#include <algorithm>
#include <functional>

#include "ir/passes/node_copies.h"

namespace retrograd::inline v0 {
namespace {

using ir::budget::at;
using ir::budget::Task;
using Action = MemoryReport::Value::Action;

// The nodes of tasks and blocks.
class Names {
 public:
  Names(const ir::Graph& graph, const ir::BudgetTasks& tasks)
      : graph_(graph), tasks_(tasks), makers_(tasks.problem.makers()), producers_(ir::producers_of(graph)) {}

  int32_t maker(size_t block) const { return makers_[block]; }
  const ir::Node& node_of_task(int32_t task) const {
    return graph_.nodes()[tasks_.nodes[at(task)].numbers.back()];
  }
  const ir::Node& node_of_block(size_t block) const {
    const auto& results = tasks_.problem.tasks[at(makers_[block])].results;
    const auto place = std::ranges::find(results, static_cast<int32_t>(block)) - results.begin();
    const ir::ValueId value = tasks_.nodes[at(makers_[block])].results[static_cast<size_t>(place)];
    return graph_.nodes()[at(producers_[at(value)])];
  }
  // The input of which a value is a view; kNoValue if a task makes its memory.
  ir::ValueId input_under(ir::ValueId v) const {
    while (v != ir::kNoValue && producers_[at(v)] >= 0) {
      if (tasks_.task_of[at(producers_[at(v)])] >= 0) return ir::kNoValue;
      v = graph_.operands(graph_.nodes()[at(producers_[at(v)])])[0];
    }
    return v;
  }

 private:
  const ir::Graph& graph_;
  const ir::BudgetTasks& tasks_;
  const std::vector<int32_t> makers_, producers_;
};

// Why a task may never run again; empty if it may.
std::string_view why_never(const ir::Graph& graph, const ir::BudgetTasks::Nodes& nodes, const Task& task) {
  if (task.until != Task::kNever) return {};
  for (uint32_t n : nodes.numbers) {
    const OpInfo& op = *graph.nodes()[n].op;
    if (op.is(Trait::updates)) return "never made again: an update of an optimizer";
    if (!op.is(Trait::pure)) return "never made again: user code or another effect";
    if (op.run_on_host) return "never made again: it runs on the host";
  }
  if (task.results.size() > Task::kMostResults) return "never made again: one of too many results";
  return "never made again: code outside may see its memory";
}

class ValueFinder {
 public:
  ValueFinder(const ir::Graph& graph, const ir::BudgetFit& fit)
      : graph_(graph), fit_(fit), names_(graph, fit.tasks), uses_(problem().blocks.size()) {
    const int32_t peak = fit.curve[0].measure.at;
    begin_ = fit.tasks.boundary ? fit.tasks.first_tasks : peak;
    made_below_ = fit.tasks.boundary ? begin_ : peak + 1;
  }

  std::vector<MemoryReport::Value> find() {
    find_uses();
    for (size_t b = 0; b < uses_.size(); ++b)
      if (uses_[b].times > 1) most_cost_ = std::max(most_cost_, cost_of_byte(b));
    for (size_t b = 0; b < uses_.size(); ++b)
      if (is_held(b) || uses_[b].times > 1) add(b);
    add_inputs();
    std::ranges::stable_sort(found_, std::greater(), &MemoryReport::Value::bytes);
    return std::move(found_);
  }

 private:
  // Of a block: the first and the last task behind the point that read it before anything is computed again, and how
  // often the plan makes it.
  struct Uses {
    int32_t first = -1, last = -1, times = 0;
  };
  const ir::budget::Problem& problem() const { return fit_.tasks.problem; }
  const Task& maker(size_t block) const { return problem().tasks[at(names_.maker(block))]; }
  int64_t bytes(size_t block) const { return problem().blocks[block].bytes; }
  double cost_of_byte(size_t block) const {
    return maker(block).cost / static_cast<double>(std::max<int64_t>(bytes(block), 1));
  }
  bool is_held(size_t block) const {
    return names_.maker(block) < made_below_ && (problem().blocks[block].to_end || is_used(block));
  }
  bool is_used(size_t block) const { return uses_[block].last >= begin_ || names_.maker(block) == begin_; }

  void find_uses() {
    for (int32_t t = begin_; t < std::ssize(problem().tasks); ++t)
      for (int32_t block : problem().tasks[at(t)].operands) {
        Uses& uses = uses_[at(block)];
        if (uses.first < 0) uses.first = t;
        uses.last = t;
      }
    for (const ir::budget::Run& run : fit_.plan().runs) {
      const Task& task = problem().tasks[at(run.task)];
      for (size_t i = 0; i < task.results.size(); ++i) uses_[at(task.results[i])].times += run.makes(i);
    }
  }

  void add(size_t block) {
    const ir::Node& node = names_.node_of_block(block);
    const bool is_again = uses_[block].times > 1;
    found_.push_back({is_again ? Action::computed_again : Action::saved, uses_[block].times - 1,
                      node.op->name, node.where, bytes(block), fit_.share(maker(block).cost),
                      is_again ? why_again(block) : why_saved(block)});
  }

  std::string_view why_again(size_t block) const {
    return is_held(block) ? "others need its memory in between" : "others are computed from it";
  }

  std::string_view why_saved(size_t block) const {
    if (problem().blocks[block].to_end) return "a result";
    const Task& task = maker(block);
    const auto& nodes = fit_.tasks.nodes[at(names_.maker(block))];
    if (const std::string_view never = why_never(graph_, nodes, task); !never.empty()) return never;
    const int32_t use = uses_[block].first;
    const auto is_result = [&](int32_t b) { return problem().blocks[at(b)].to_end; };
    if (task.until < use && std::ranges::any_of(task.results, is_result))
      return "kept: it is made together with a result";
    if (task.until < use) return "kept: what it is computed from changes before it is needed";
    if (fit_.chosen == 0) return "kept: there is room for all";
    if (cost_of_byte(block) > most_cost_) return "kept: costs more for a byte than what is made again";
    const auto is_gone = [&](int32_t operand) { return uses_[at(operand)].last < use; };
    if (std::ranges::any_of(task.operands, is_gone)) return "kept: what it is computed from is gone by then";
    return "kept: there is room for it";
  }

  // Those that are read behind the point.
  void add_inputs() {
    std::vector<bool> seen(static_cast<size_t>(graph_.value_count()));
    for (int32_t t = begin_; t < std::ssize(problem().tasks); ++t)
      for (uint32_t n : fit_.tasks.nodes[at(t)].numbers)
        for (ir::ValueId v : graph_.operands(graph_.nodes()[n])) {
          const ir::ValueId input = names_.input_under(v);
          if (input == ir::kNoValue || seen[at(input)]) continue;
          seen[at(input)] = true;
          found_.push_back({Action::input, 0, "input", graph_.nodes()[n].where,
                            retrograd::bytes_of(graph_.type(input)), 0, "an input: it is there anyway"});
        }
  }

  const ir::Graph& graph_;
  const ir::BudgetFit& fit_;
  const Names names_;
  std::vector<Uses> uses_;
  int32_t begin_ = 0,
          made_below_ = 0;  // tasks: what is held is made by those below, and read from the first one on
  double most_cost_ = 0;    // of a byte of what is made again
  std::vector<MemoryReport::Value> found_;
};

MemoryCertificate::Run run_of(const ir::BudgetTasks& tasks, const ir::budget::Run& run, const ir::Node& node,
                              int64_t held) {
  const Task& task = tasks.problem.tasks[at(run.task)];
  MemoryCertificate::Run made{run.task, node.op->name, node.where, task.operands, {}, {},
                              {},       task.scratch,  held};
  for (size_t i = 0; i < task.results.size(); ++i)
    if (run.makes(i))
      made.makes.push_back(task.results[i]);
    else if (task.makes_all)
      made.unused.push_back(task.results[i]);
  for (const Task::Overlay& o : task.overlays)
    if (run.makes(at(o.result)))
      made.overlays.push_back({task.results[at(o.result)], task.operands[at(o.operand)]});
  return made;
}

}  // namespace

std::vector<MemoryReport::Value> values_of(const ir::Graph& graph, const ir::BudgetFit& fit) {
  return ValueFinder(graph, fit).find();
}

MemoryCertificate certificate_of(const ir::Graph& graph, const ir::BudgetFit& fit, int64_t besides) {
  const ir::budget::Problem& problem = fit.tasks.problem;
  const std::vector<ir::budget::Run>& runs = fit.plan().runs;
  MemoryCertificate made;
  made.besides_bytes = besides;
  if (runs.empty()) return made;
  const Names names(graph, fit.tasks);
  for (size_t b = 0; b < problem.blocks.size(); ++b) {
    const ir::Node& node = names.node_of_block(b);
    made.values.push_back({node.op->name, node.where, problem.blocks[b].bytes, problem.blocks[b].to_end});
  }
  const std::vector<int64_t> held = ir::budget::held_bytes(problem, runs);
  for (size_t r = 0; r < runs.size(); ++r)
    made.runs.push_back(run_of(fit.tasks, runs[r], names.node_of_task(runs[r].task), held[r]));
  made.peak_bytes = fit.plan().measure.peak;
  made.peak_run = fit.plan().measure.at;
  made.held = ir::budget::blocks_held(problem, runs, made.peak_run);
  const auto widest = std::ranges::max_element(
      problem.tasks, {}, [&](const Task& task) { return ir::budget::bytes_alone(problem, task); });
  made.lower_bound_bytes = ir::budget::bytes_alone(problem, *widest);
  const auto first = std::ranges::find(runs, widest - problem.tasks.begin(), &ir::budget::Run::task);
  made.widest_run = static_cast<int32_t>(first - runs.begin());
  return made;
}

}  // namespace retrograd
