// See tracer/function/backwards.h.
#include "tracer/function/backwards.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "engine/inplace.h"
#include "ir/verify.h"
#include "tracer/function/planning.h"
#include "tracer/observe/log.h"

namespace retrograd::inline v0 {

// ---- the tape -----------------------------------------------------------------------------------------------------

void RecordedTape::find_operands(FunctionResults& results) {
  FunctionInputs& inputs = recorder_->inputs();
  for (const StandIn& s : inputs.stand_ins()) {
    if (!s.leaf.defined() || (s.argument < 0 && s.tensor.impl().grad_fn.get() == s.history.get())) continue;
    leaves_.push_back(s.leaf);
    inputs_.push_back(inputs.input_of(s.tensor));
  }
  for (const auto& [leaf, input] : inputs.captured_leaves()) {
    leaves_.push_back(leaf);
    inputs_.push_back(input);
  }
  find_made_leaves(results);
}

// Made leaves are results, so that gradients reach the leaf that a run made.
void RecordedTape::find_made_leaves(FunctionResults& results) {
  std::vector<Edge> edges;
  for (const ResultBinding& r : results)
    if (r.is_differentiable && !is_outdated(r.recorded.impl()))
      edges.push_back(gradient_edge(r.recorded.impl()));
  const Walk walk(edges, nullptr);
  std::unordered_set<const TensorImpl*> known;
  for (const Tensor& leaf : leaves_) known.insert(leaf.get());
  const StandIns& stand_ins = recorder_->inputs().stand_ins();
  for (const Walk::Leaf& leaf : walk.leaves()) {
    if (known.contains(leaf.leaf) || stand_ins.of_tensor(leaf.leaf) || stand_ins.of_leaf(leaf.leaf)) continue;
    if (!leaf.leaf->graph)
      throw NotRecordable(
          fmt::format("a leaf from outside, {}, shares its memory with another tensor from outside",
                      to_string(leaf.leaf->type())));
    if (leaf.leaf->value_id == ir::kNoValue) continue;
    made_leaves_.push_back(results.add_made_leaf(*leaf.leaf));
    leaves_.push_back(results[made_leaves_.back()].recorded);
  }
}

void RecordedTape::find_functions(const FunctionResults& results) {
  std::vector<Edge> edges;
  for (const ResultBinding& r : results) edges.push_back(r.edge);
  const Walk walk(edges, nullptr);
  has_functions_ = std::ranges::any_of(
      walk.order(), [](const Walk::Item& item) { return FunctionCall::made(*item.record); });
}

// ---- recording ----------------------------------------------------------------------------------------------------

bool FunctionBackward::needs_forward() const {
  return !recorded.reads.straight.empty() ||
         std::ranges::any_of(recorded.inputs, [](const auto& input) { return input.saved >= 0; });
}

namespace {

Arrivals all_of(const FunctionResults& results) {
  Arrivals all;
  for (const ResultBinding& r : results)
    all.push_back(r.is_differentiable ? Arrival::with_gradient : Arrival::none);
  return all;
}

}  // namespace

RecordedBackwards RecordedTape::record_first(FunctionResults& results) {
  const Arrivals all = all_of(results);
  const std::vector<Number> values = RecordedFunction::hints(recorder_->graph());
  if (!recorder_->sizes().count()) return record_backwards(results, values);
  try {
    shared_ = record(results, all, values);
  } catch (const FixedSizesNeeded&) {
    throw;
  } catch (const Error&) {
    return record_backwards(results, values);
  }
  return backwards_at(results, values);
}

RecordedBackwards RecordedTape::backwards_at(FunctionResults& results, std::span<const Number> values) const {
  const auto all = shared_ ? RecordedFunction::values_at(shared_->graph, values) : std::nullopt;
  if (!all) return record_backwards(results, values);
  RecordedBackwards made;
  made[all_of(results)] = ready(shared_->at_sizes(*all, recorder_->sizes().count()));
  return made;
}

RecordedBackwards RecordedTape::record_backwards(FunctionResults& results,
                                                 std::span<const Number> values) const {
  RecordedBackwards made;
  const auto is_recorded = [&](const Arrivals& arrivals) {
    std::unique_ptr<FunctionBackward>& backward = made[arrivals];
    try {
      backward = record_backward(results, arrivals, values);
    } catch (const FixedSizesNeeded&) {
      throw;
    } catch (const Error& e) {
      backward = std::make_unique<FunctionBackward>();
      backward->error = e;
    }
    return !backward->error;
  };
  const Arrivals all = all_of(results);
  if (is_recorded(all) || std::ranges::count(all, Arrival::with_gradient) == 1) return made;
  for (size_t i = 0; i < all.size(); ++i) {
    Arrivals one(all.size());
    one[i] = all[i];
    if (all[i] != Arrival::none) is_recorded(one);
  }
  return made;
}

RecordedFunction RecordedTape::record(FunctionResults& results, const Arrivals& arrivals,
                                      std::span<const Number> values) const {
  const std::lock_guard lock(mutex_);
  RecordedFunction backward;
  backward.graph.name = "backward";
  backward.graph.symbols = recorder_->graph().symbols.at(values);
  const int32_t of_forward = backward.graph.symbols.size();
  FunctionRecorder recorder(backward.graph, *recorder_);
  BackwardRequest request;
  request.to_inputs = request.retain_graph = true;
  request.accumulate = false;
  for (size_t i = 0; i < results.size(); ++i) {
    if (arrivals[i] == Arrival::none) continue;
    const Tensor& result = results[i].recorded;
    if (!results[i].edge)
      results[i].edge = gradient_edge(result.impl());  // a view of memory from outside goes out of date
    request.roots.push_back(result);
    request.root_edges.push_back(results[i].edge);
    request.cotangents.push_back(arrivals[i] == Arrival::with_gradient
                                     ? recorder.inputs().cotangent(result.impl().type(), static_cast<int>(i))
                                     : Tensor());
  }
  for (const Tensor& leaf : leaves_) request.input_edges.push_back(gradient_edge(leaf.impl()));
  Walk walk = request.walk();
  recorder.finish(recorder.backward_of_function(request, walk), backward);
  RecordedFunction::settle_unused(backward.numbers, backward.graph);
  backward.reads.symbols = of_forward;
  return backward;
}

std::unique_ptr<FunctionBackward> RecordedTape::ready(RecordedFunction recorded) {
  auto backward = std::make_unique<FunctionBackward>();
  backward->recorded = std::move(recorded);
  ir::verify(backward->recorded.graph);
  backward->numbers = RecordedFunction::hints(backward->recorded.graph);
  return backward;
}

std::unique_ptr<FunctionBackward> RecordedTape::record_backward(FunctionResults& results,
                                                                const Arrivals& arrivals,
                                                                std::span<const Number> values) const {
  RecordedFunction recorded = record(results, arrivals, values);
  if (const int32_t sizes = recorder_->sizes().count())
    recorded = recorded.at_sizes(RecordedFunction::hints(recorded.graph), sizes);
  return ready(std::move(recorded));
}

// ---- finding one --------------------------------------------------------------------------------------------------

FunctionBackwards::FunctionBackwards(const RecordedFunction& forward, const RecordedTape& tape,
                                     FunctionResults& results, std::span<const Number> values,
                                     RecordedBackwards first)
    : forward_(forward),
      tape_(tape),
      results_(results),
      values_(values.begin(), values.end()),
      all_(std::move(first)),
      saved_(forward.saved) {
  for (const auto& [arrivals, backward] : all_) note_users(*backward);
}

void FunctionBackwards::note_users(const FunctionBackward& backward) {
  for (const auto& [value, user] : backward.recorded.reads.users) note_user(static_cast<size_t>(value), user);
}

// Only for user functions does it matter whether a result without a gradient is reached; the walk of the running
// backward tells.
Arrivals FunctionBackwards::arrivals_at(const Record& record, std::span<TensorImpl* const> cotangents) const {
  Arrivals arrivals = all_of(results_);
  for (size_t i = 0; i < arrivals.size(); ++i)
    if (!cotangents[i]) arrivals[i] = Arrival::none;
  CurrentBackward* current = CurrentBackward::innermost();
  if (!tape_.has_functions() || !current || arrivals == all_of(results_)) return arrivals;
  for (const Walk::Item& item : current->walk().order()) {
    if (item.record == &record) break;
    for (int k = 0; k < item.record->operands && item.runs; ++k) {
      const Edge& edge = item.record->edge(k);
      if (edge.record() != &record || !results_[edge.output_nr()].is_differentiable) continue;
      Arrival& arrival = arrivals[edge.output_nr()];
      if (arrival == Arrival::none) arrival = Arrival::without_gradient;
    }
  }
  return arrivals;
}

FunctionBackward& FunctionBackwards::find(const Record& record, std::span<TensorImpl* const> cotangents) {
  const Arrivals arrivals = arrivals_at(record, cotangents);
  std::unique_lock lock(mutex_);
  std::unique_ptr<FunctionBackward>& backward = all_[arrivals];
  const bool is_new = !backward;
  if (is_new) {
    auto made = tape_.record_backward(results_, arrivals, values_);
    note_users(*made);
    if (is_fitted_)
      made->inputs = made->recorded.inputs;
    else
      plan(*made);
    backward = std::move(made);
  }
  if (backward->error) throw Error(*backward->error);
  lock.unlock();
  if (is_new)
    logging::captured(is_fitted_ ? backward->recorded.graph : backward->planned,
                      "other results of this function have a gradient");
  return *backward;
}

const FunctionBackward* FunctionBackwards::of_all() const {
  std::lock_guard lock(mutex_);
  const auto it = all_.find(all_of(results_));
  return it == all_.end() || it->second->error ? nullptr : it->second.get();
}

// ---- planning -----------------------------------------------------------------------------------------------------

void FunctionBackwards::plan_first() {
  for (auto& [arrivals, backward] : all_)
    if (!backward->error && !backward->plan) plan(*backward);
}

namespace {

// User code may throw. Then the saved values of its record must still exist, as eagerly, where a record releases them
// all at its end: inputs that a record's nodes use last are kept up to the last user code that they call.
std::vector<KeptValue> inputs_of_user_code(const ir::Graph& graph) {
  const auto& nodes = graph.nodes();
  const auto record_of = [&](uint32_t n) {
    return nodes[n].origin < 0 ? int64_t{-1} : int64_t{graph.origin(nodes[n].origin).ordinal};
  };
  std::unordered_map<int64_t, uint32_t> last_code;  // of each record
  for (uint32_t n = 0; n < nodes.size(); ++n)
    if (record_of(n) >= 0 && nodes[n].op->is(Trait::effect) && nodes[n].op->run_on_host)
      last_code[record_of(n)] = n;
  if (last_code.empty()) return {};
  std::vector<KeptValue> kept;
  std::vector<bool> is_input(static_cast<size_t>(graph.value_count()));
  for (const ir::Input& input : graph.inputs())
    if (input.kind == ir::Input::Kind::tensor) is_input[static_cast<size_t>(input.value)] = true;
  for (uint32_t n = 0; n < nodes.size(); ++n)
    if (const auto code = last_code.find(record_of(n)); code != last_code.end() && code->second > n)
      for (ir::ValueId v : graph.operands(nodes[n]))
        if (v != ir::kNoValue && is_input[static_cast<size_t>(v)]) kept.push_back({v, code->second + 1});
  return kept;
}

}  // namespace

void FunctionBackwards::plan(FunctionBackward& backward) const {
  if (!is_fitted_) {
    backward.inputs = backward.recorded.inputs;
    if (backward.planned.nodes().empty())
      backward.planned = optimised(with_recompute(backward.recorded, forward_.graph, recompute_), {},
                                   given_inputs(backward.recorded));
  }
  const std::vector<KeptValue> kept = inputs_of_user_code(backward.planned);
  backward.plan = plan_of(backward.planned, backward.numbers, {}, {}, {}, nullptr, kept);
}

// Everything is saved if user code runs in between, or if there are several results: a backward from some of them may
// continue although values saved for others were written to.
bool FunctionBackwards::may_recompute() const {
  const auto is_pure = [](const ir::Node& n) { return n.op->is(Trait::pure); };
  return !passes_off()[ir::pass_number("recompute")] &&
         std::ranges::count_if(results_, &ResultBinding::is_differentiable) == 1 && !first().error &&
         std::ranges::all_of(forward_.graph.nodes(), is_pure);
}

// Values whose memory may be held or written to elsewhere are saved.
ir::Recompute FunctionBackwards::recomputable() const {
  const ir::Graph& graph = forward_.graph;
  ir::MemoryClasses classes(graph);
  std::vector<bool> is_saved(graph.outputs().size());
  for (const RecordedFunction::Saved& s : forward_.saved) is_saved[static_cast<size_t>(s.output)] = true;
  std::set<ir::ValueId> given_away;
  for (size_t o = 0; o < is_saved.size(); ++o)
    if (const ir::ValueId v = graph.outputs()[o]; !is_saved[o] && v != ir::kNoValue)
      given_away.insert(classes.representative(v));
  const std::vector<ir::ValueId> saved = tape_.recorder().saved().values();
  return ir::Recompute(graph, saved, [&](size_t i) {
    const RecordedFunction::Saved& s = forward_.saved[i];
    return !s.location.defined() && graph.outputs()[static_cast<size_t>(s.output)] == saved[i] &&
           classes.is_private(saved[i]) && !given_away.contains(classes.representative(saved[i]));
  });
}

// Recomputed values must not raise the peak of the backward.
void FunctionBackwards::find_recompute() {
  if (!may_recompute()) return;
  ir::Recompute recompute = recomputable();
  if (!recompute.any()) return;
  FunctionBackward& backward = *all_.begin()->second;
  const std::vector<int32_t> given = given_inputs(backward.recorded);
  backward.planned = optimised(backward.recorded.graph, {}, given);
  recompute_ = std::move(recompute);
  ir::Graph recomputing = optimised(with_recompute(backward.recorded, forward_.graph, recompute_), {}, given);
  if (peak_of(recomputing, {}, given) > peak_of(backward.planned, {}, given)) {
    recompute_ = {};
    return;
  }
  backward.planned = std::move(recomputing);
  note_recompute();
}

BackwardChoices FunctionBackwards::choices() const {
  return {recompute_, given_inputs(all_.begin()->second->recorded)};
}

bool FunctionBackwards::adopt(const OptimisedFunction& shared, std::span<const Number> values) {
  std::optional<ir::Graph> planned = tape_.shared() ? shared.backward(values) : std::nullopt;
  if (!planned) return false;
  FunctionBackward& backward = *all_.begin()->second;
  const auto& [recompute, given] = shared.choices();
  if (peak_of(*planned, {}, given) > peak_of(backward.recorded.graph, {}, given)) return false;
  backward.planned = *std::move(planned);
  recompute_ = recompute;
  note_recompute();
  return true;
}

void FunctionBackwards::fit(ir::Graph planned, std::vector<RecordedFunction::Input> inputs,
                            std::vector<RecordedFunction::Saved> saved) {
  is_fitted_ = true;
  saved_ = std::move(saved);
  FunctionBackward& backward = *all_.begin()->second;
  backward.plan.reset();
  backward.planned = std::move(planned);
  backward.inputs = std::move(inputs);
  plan(backward);
}

void FunctionBackwards::note_recompute() {
  for (size_t i = 0; i < users_.size(); ++i)
    for (const Record* user : std::unordered_set(users_[i])) note_user(i, user);
}

// A record that uses a recomputed value uses the values that it is computed from.
void FunctionBackwards::note_user(size_t saved, const Record* user) {
  const auto note = [&](size_t i) {
    users_.resize(std::max(users_.size(), i + 1));
    users_[i].insert(user);
  };
  note(saved);
  if (recompute_.goes(saved))
    for (int32_t source : recompute_.sources(saved)) note(static_cast<size_t>(source));
}

std::vector<bool> FunctionBackwards::unused(const std::unordered_set<const Record*>& released,
                                            size_t values) const {
  std::vector<bool> unused(values, true);
  for (size_t i = 0; i < std::min(values, users_.size()); ++i)
    unused[i] = std::ranges::all_of(users_[i], [&](const Record* r) { return released.contains(r); });
  return unused;
}

bool FunctionBackwards::has_all(const Record& record, const Tensors& values) const {
  for (size_t i = 0; i < std::min(values.size(), users_.size()); ++i)
    if (saved_[i].output >= 0 && !values[i].defined() && users_[i].contains(&record)) return false;
  return true;
}

// The inputs of a backward whose memory may be released at their last use, as far as this function knows: values that
// it computed, that are not results, and that share memory with no other saved value.
std::vector<int32_t> FunctionBackwards::given_inputs(const RecordedFunction& backward) const {
  ir::MemoryClasses classes(forward_.graph);
  std::map<ir::ValueId, int> holders;
  for (ir::ValueId v : forward_.graph.outputs())
    if (v != ir::kNoValue) ++holders[classes.representative(v)];
  const std::vector<ir::ValueId> saved = tape_.recorder().saved().values();
  std::vector<int32_t> given;
  for (size_t i = 0; i < backward.inputs.size(); ++i) {
    if (backward.inputs[i].saved < 0) continue;
    const ir::ValueId v = saved[static_cast<size_t>(backward.inputs[i].saved)];
    if (classes.is_private(v) && holders[classes.representative(v)] == 1)
      given.push_back(static_cast<int32_t>(i));
  }
  return given;
}

}  // namespace retrograd
