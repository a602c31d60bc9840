// See tracer/function/planning.h.
#include "tracer/function/planning.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "ir/passes/late_reads.h"
#include "ir/passes/pipeline.h"
#include "ir/verify.h"
#include "rewrites/rewrites.h"
#include "tracer/function/early_gradients.h"
#include "tracer/plan/plan_cache.h"

namespace retrograd::inline v0 {
ir::PassSet passes_off() { return ir::passes_named(secure_getenv(ir::kPassesOffVariable)); }

std::vector<ir::OutsideWrite> outside_writes(const RecordedFunction& recorded) {
  std::vector<ir::OutsideWrite> writes;
  for (const RecordedFunction::Write& w : recorded.writes)
    if (w.may_lie_there()) writes.push_back({w.input, w.output});
  return writes;
}

namespace {

bool has_symbols(const ir::Graph& graph) {
  return std::ranges::any_of(graph.types(), [](const TensorType& t) { return t.shape.is_symbolic(); });
}

}  // namespace

ir::Graph optimised(const ir::Graph& graph, std::span<const ir::OutsideWrite> writes,
                    std::span<const int32_t> given) {
  ir::PassInput input = rewrites::all();
  input.writes = writes;
  input.given = given;
  input.executor = &executor_for(graph);
  const ir::PassSet off = passes_off();
  std::string settings =
      fmt::format("executor: {}{}\npasses off: {}\nwrites:", input.executor->name(),
                  input.executor->records_launches() ? ", which records launches" : "", off.to_string());
  for (const ir::OutsideWrite& w : writes) settings += fmt::format(" {}:{}", w.input, w.output);
  settings += "\ngiven:";
  for (int32_t i : given) settings += fmt::format(" {}", i);
  return plan_cache::find_or_make(graph, settings, [&] {
    ir::Graph made = graph.copy();
    ir::run_passes(made, {.input = input, .off = off});
    if (input.executor->records_launches() && !has_symbols(made)) ir::late_reads(made);
    return made;
  });
}

std::optional<ir::Graph> optimised_at(const ir::Graph& optimised, std::span<const Number> values,
                                      int32_t sizes) {
  const std::optional<std::vector<Number>> all = RecordedFunction::values_at(optimised, values);
  if (!all) return {};
  ir::Graph made = optimised.at_sizes(*all, sizes);
  if (executor_for(made).records_launches()) ir::late_reads(made);
  ir::verify(made);
  return made;
}

ir::Graph with_recompute(const RecordedFunction& backward, const ir::Graph& forward,
                         const ir::Recompute& recompute) {
  ir::Graph graph = backward.graph.copy();
  if (!recompute.any()) return graph;
  std::vector<int32_t> saved;
  for (const RecordedFunction::Input& input : backward.inputs) saved.push_back(input.saved);
  const SymbolTable::Scope symbols(&graph.symbols);
  recompute.compute_anew(graph, forward, saved);
  return graph;
}

std::vector<int32_t> saved_outputs(const RecordedFunction& recorded) {
  std::vector<int32_t> outputs;
  for (const RecordedFunction::Saved& s : recorded.saved) outputs.push_back(s.output);
  return outputs;
}

std::unique_ptr<Plan> plan_of(const ir::Graph& graph, std::span<const Number> numbers,
                              std::span<const ir::Binding> bindings, std::span<const WrittenInput> writes,
                              std::optional<int64_t> arena_waste, ir::GroupMemories* groups,
                              std::span<const KeptValue> kept) {
  return std::make_unique<Plan>(PlanRequest{.graph = graph,
                                            .values = numbers,
                                            .executor = executor_for(graph),
                                            .kept = kept,
                                            .bindings = bindings,
                                            .writes = writes,
                                            .arena_waste = arena_waste,
                                            .groups = groups});
}

Tensors run_plan(const Plan& plan, std::vector<ir::Binding> bindings, std::span<const Number> numbers,
                 NodesRun& nodes, RunWatcher* watcher, Tensors* left, const EarlyGradients* early) {
  PlanRun run(plan, std::move(bindings), numbers, {}, watcher);
  if (watcher) watcher->run = &run;
  try {
    if (early) early->run(run);
    run.go();
  } catch (...) {
    if (watcher) watcher->run = nullptr;
    nodes = {run.nodes_run(), run.nodes_begun()};
    if (left) *left = run.inputs_left();
    throw;
  }
  if (watcher) watcher->run = nullptr;
  const size_t all = plan.program().graph.nodes().size();
  nodes = {all, all};
  return run.outputs();
}

int64_t peak_of(const ir::Graph& graph, std::span<const ir::OutsideWrite> writes,
                std::span<const int32_t> given, ir::GroupMemories& groups) {
  return ir::lifetimes(graph, {.writes = writes, .given = given, .groups = &groups}).peak_bytes();
}

int64_t peak_of(const ir::Graph& graph, std::span<const ir::OutsideWrite> writes,
                std::span<const int32_t> given, std::span<const Number> values) {
  ir::GroupMemories groups(graph, executor_for(graph), values);
  const ir::LifetimeOptions options{.values = values, .writes = writes, .given = given, .groups = &groups};
  return ir::lifetimes(graph, options).peak_bytes();
}

int64_t bytes_saved(const RecordedFunction& recorded, std::span<const Number> values,
                    const ir::Graph& planned, ir::GroupMemories& groups) {
  const std::vector<ir::OutsideWrite> writes = outside_writes(recorded);
  return peak_of(recorded.graph, writes, {}, values) - peak_of(planned, writes, {}, groups);
}

}  // namespace retrograd
