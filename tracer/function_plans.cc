// What is planned of a recorded function and its backwards: see tracer/function_capture.h; start reading at find_recompute, then
// plan_backward. The recorded graphs stay as they are, for gradients of gradients.
#include <algorithm>
#include <cstdlib>
#include <map>

#include <fmt/format.h>

#include "engine/runner.h"
#include "ir/passes/late_reads.h"
#include "ir/passes/pipeline.h"
#include "rewrites/rewrites.h"
#include "tracer/function_planning.h"
#include "tracer/function_saved.h"
#include "tracer/plan_cache.h"

namespace retrograd {
namespace {

ir::PassSet passes_off() { return ir::passes_named(secure_getenv(ir::kPassesOffVariable)); }

// What is to be computed in the memory of an input, for the passes.
std::vector<ir::OutsideWrite> outside_writes(const RecordedFunction& recorded) {
  std::vector<ir::OutsideWrite> writes;
  for (const RecordedFunction::Write& w : recorded.writes)
    if (w.may_lie_there()) writes.push_back({w.input, w.output});
  return writes;
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
    if (input.executor->records_launches()) ir::late_reads(made);
    return made;
  });
}

std::vector<int32_t> saved_outputs(const RecordedFunction& recorded) {
  std::vector<int32_t> outputs;
  for (const RecordedFunction::Saved& s : recorded.saved) outputs.push_back(s.output);
  return outputs;
}

std::unique_ptr<Plan> plan_of(const ir::Graph& graph, std::vector<Source>& sources,
                              std::span<const Number> numbers, std::span<const WrittenInput> writes,
                              std::optional<int64_t> arena_waste, ir::GroupMemories* groups) {
  static const DriveLog no_log;
  static const std::vector<RuleRun> no_rules;
  sources.resize(graph.inputs().size(), Source{Source::Kind::constant});
  return std::make_unique<Plan>(graph, sources, no_rules, no_log, numbers, executor_for(graph), writes,
                                arena_waste, groups);
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

namespace {

// What the passes have saved, so that with it the peak is not above an eager run's. `groups`: of `planned`.
int64_t arena_waste(const RecordedFunction& recorded, const ir::Graph& planned, ir::GroupMemories& groups) {
  const std::vector<ir::OutsideWrite> writes = outside_writes(recorded);
  return std::max<int64_t>(0, peak_of(recorded.graph, writes, {}) - peak_of(planned, writes, {}, groups));
}

}  // namespace

void FunctionCapture::plan_forward(const Tensors& arguments) {
  if (!backwards_.empty()) find_recompute();
  ir::Graph graph = recorded_.graph.copy();
  recompute_.replace_outputs(graph, saved_outputs(recorded_));
  planned_ = optimised(graph, outside_writes(recorded_), {});
  ir::GroupMemories groups(planned_, executor_for(planned_), numbers_);
  std::optional<int64_t> waste;
  if (kind_ == FunctionKind::step) waste = arena_waste(recorded_, planned_, groups);
  plan_ = plan_of(planned_, sources_, numbers_, written_inputs(arguments), waste, &groups);
}

// Values whose memory somebody else may hold or write to are saved. So is everything where code of the user's runs in between, and where there
// are several ends: then a backward from some of them may go on though what others have saved was written to. What is computed anew must not
// lift the peak of the backward.
void FunctionCapture::find_recompute() {
  const ir::Graph& graph = recorded_.graph;
  const auto is_pure = [](const ir::Node& n) { return n.op->is(Trait::pure); };
  if (passes_off()[ir::kPassCount] || std::ranges::count(ends_, true, &End::is_differentiable) != 1 ||
      backwards_.begin()->second->error || !std::ranges::all_of(graph.nodes(), is_pure))
    return;
  ir::MemoryClasses classes(graph);
  std::vector<bool> is_saved(graph.outputs().size());
  for (const RecordedFunction::Saved& s : recorded_.saved) is_saved[static_cast<size_t>(s.output)] = true;
  std::set<ir::ValueId> given_away;
  for (size_t o = 0; o < is_saved.size(); ++o)
    if (const ir::ValueId v = graph.outputs()[o]; !is_saved[o] && v != ir::kNoValue)
      given_away.insert(classes.representative(v));
  const std::vector<ir::ValueId> saved = recorder_->saved_values();
  ir::Recompute recompute(graph, saved, [&](size_t i) {
    const RecordedFunction::Saved& s = recorded_.saved[i];
    return !s.place.defined() && graph.outputs()[static_cast<size_t>(s.output)] == saved[i] &&
           classes.is_private(saved[i]) && !given_away.contains(classes.representative(saved[i]));
  });
  if (!recompute.any()) return;
  Backward& backward = *backwards_.begin()->second;
  const std::vector<int32_t> given = given_inputs(backward.recorded);
  backward.planned = optimised(backward.recorded.graph, {}, given);
  recompute_ = std::move(recompute);
  ir::Graph anew = optimised(graph_to_plan(backward.recorded), {}, given);
  if (peak_of(anew, {}, given) > peak_of(backward.planned, {}, given)) {
    recompute_ = {};
    return;
  }
  backward.planned = std::move(anew);
  for (size_t i = 0; i < users_.size(); ++i)
    for (const Record* user : std::unordered_set(users_[i])) note_user(i, user);
}

// A record that asks for a value that is computed anew asks for what it is computed from.
void FunctionCapture::note_user(size_t saved, const Record* user) {
  const auto note = [&](size_t i) {
    users_.resize(std::max(users_.size(), i + 1));
    users_[i].insert(user);
  };
  note(saved);
  if (recompute_.goes(saved))
    for (int32_t source : recompute_.sources(saved)) note(static_cast<size_t>(source));
}

ir::Graph FunctionCapture::graph_to_plan(const RecordedFunction& backward) const {
  ir::Graph graph = backward.graph.copy();
  if (!recompute_.any()) return graph;
  std::vector<int32_t> saved;
  for (const RecordedFunction::Input& input : backward.inputs) saved.push_back(input.saved);
  recompute_.compute_anew(graph, recorded_.graph, saved);
  return graph;
}

// The inputs of a backward whose memory goes with their last use, as far as this function knows: values that it has computed, that are no
// results, and that share memory with no other saved one.
std::vector<int32_t> FunctionCapture::given_inputs(const RecordedFunction& backward) const {
  ir::MemoryClasses classes(recorded_.graph);
  std::map<ir::ValueId, int> holders;
  for (ir::ValueId v : recorded_.graph.outputs())
    if (v != ir::kNoValue) ++holders[classes.representative(v)];
  const std::vector<ir::ValueId> saved = recorder_->saved_values();
  std::vector<int32_t> given;
  for (size_t i = 0; i < backward.inputs.size(); ++i) {
    if (backward.inputs[i].saved < 0) continue;
    const ir::ValueId v = saved[static_cast<size_t>(backward.inputs[i].saved)];
    if (classes.is_private(v) && holders[classes.representative(v)] == 1)
      given.push_back(static_cast<int32_t>(i));
  }
  return given;
}

void FunctionCapture::plan_backward(Backward& backward) {
  if (backward.planned.nodes().empty())
    backward.planned = optimised(graph_to_plan(backward.recorded), {}, given_inputs(backward.recorded));
  backward.runs_code = std::ranges::any_of(backward.planned.nodes(), [](const ir::Node& n) {
    return n.op->is(Trait::effect) && n.op->run_on_host;
  });
  backward.plan = plan_of(backward.planned, backward.sources, backward.numbers);
}

}  // namespace retrograd
