// See tracer/function/planning.h.
#include "tracer/function/planning.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "ir/passes/late_reads.h"
#include "ir/passes/pipeline.h"
#include "rewrites/rewrites.h"
#include "tracer/plan/plan_cache.h"

namespace retrograd::inline v0 {
ir::PassSet passes_off() { return ir::passes_named(secure_getenv(ir::kPassesOffVariable)); }

std::vector<ir::OutsideWrite> outside_writes(const RecordedFunction& recorded) {
  std::vector<ir::OutsideWrite> writes;
  for (const RecordedFunction::Write& w : recorded.writes)
    if (w.may_lie_there()) writes.push_back({w.input, w.output});
  return writes;
}

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
    if (input.executor->records_launches()) ir::late_reads(made);
    return made;
  });
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
                 NodesRun& nodes, RunWatcher* watcher, Tensors* left) {
  PlanRun run(plan, std::move(bindings), numbers, {}, watcher);
  if (watcher) watcher->run = &run;
  try {
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
                std::span<const int32_t> given) {
  ir::GroupMemories groups(graph, executor_for(graph));
  return peak_of(graph, writes, given, groups);
}

int64_t bytes_saved(const RecordedFunction& recorded, const ir::Graph& planned, ir::GroupMemories& groups) {
  const std::vector<ir::OutsideWrite> writes = outside_writes(recorded);
  return peak_of(recorded.graph, writes, {}) - peak_of(planned, writes, {}, groups);
}

}  // namespace retrograd
