// See tracer/function_recorder.h.
#include "tracer/function_recorder.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include <fmt/format.h>

#include "engine/runner.h"
#include "ir/bookkeeping.h"
#include "ir/each_field.h"
#include "ops/arithmetic.h"
#include "ops/shape_ops.h"
#include "ops/views.h"

namespace retrograd {
FunctionRecorder::~FunctionRecorder() {
  restore();
  RecordedFunction::settle_unused(numbers_, graph_);  // of a recording that was broken off
}

std::vector<Number> RecordedFunction::hints(const ir::Graph& graph) {
  std::vector<Number> numbers;
  for (int32_t i = 0; i < graph.symbols.size(); ++i) numbers.push_back(graph.symbols.expr(i).hint);
  if (numbers.empty()) numbers.resize(1);
  return numbers;
}

void RecordedFunction::settle_unused(std::span<const Numbers> numbers, const ir::Graph& graph) noexcept {
  Number values[Emitter::kMostLiveNumbers];
  for (size_t i = numbers.size(); i-- > 0;) {
    const Numbers& n = numbers[i];
    for (int k = 0; k < n.count; ++k) values[k] = graph.symbols.expr(n.first + k).hint;
    if (n.live.settle) n.live.settle({values, static_cast<size_t>(n.count)}, false);
  }
}

size_t RecordedFunction::effects_among(const ir::Graph& graph, size_t nodes) {
  return static_cast<size_t>(std::ranges::count_if(std::span(graph.nodes()).first(nodes),
                                                   [](const auto& n) { return n.op->is(Trait::effect); }));
}

void FunctionRecorder::restore() {
  for (LeafGrad& g : grads_) g.leaf->need_meta().grad = std::move(g.before);
  grads_.clear();
  grad_numbers_.clear();
  for (const StandIn& s : stand_ins_)
    if (AutogradMeta* meta = s.tensor.impl().meta.get()) meta->grad.reset();
}

void FunctionRecorder::at(const Origin& origin) {
  if (is_nested()) return;  // its nodes belong to the code that has started it
  position_.at_leaf = !origin.record;
  if (position_.at_leaf && !forward_) note_leaf(*position_.walk->leaves()[origin.ordinal].leaf);
  if (origin.record != position_.running && origin.record && origin.record->slots)
    unpacked_.push_back(origin.record);
  position_.running = origin.record;
  position_.origin =
      origin.record ? graph_.add_origin({origin.record->op->name, origin.ordinal, origin.part}) : -1;
}

void FunctionRecorder::note_leaf(TensorImpl& leaf) {
  begun_leaves_.push_back({RefPtr<TensorImpl>(&leaf), live_hooks(leaf), effects_});
}

// Numbers of the forward that a rule reads are symbols here, too.
const void* FunctionRecorder::attrs_of(const Record& record) {
  if (!forward_ || !record.op->visit_attrs) return Emitter::attrs_of(record);
  attrs_.resize(record.op->attrs_size);
  std::memcpy(attrs_.data(), record.attrs(), record.op->attrs_size);
  ir::for_each_field(*record.op, attrs_.data(), [&](auto, Scalar& number) {
    if (!number.is_symbolic()) return;
    const auto [it, fresh] = forward_numbers_.try_emplace(number.id(), 0);
    if (fresh) it->second = graph_.symbols.add_symbol(number.number());
    number = Scalar::symbol(it->second, number.number());
  });
  return attrs_.data();
}

// ---- calls ---------------------------------------------------------------------------------------------------------------------------

void FunctionRecorder::emit(const Call& call, Tensor* results) {
  emit_call(call, results);
  no_grad_.resize(graph_.nodes().size(), !GradMode::is_enabled());
}

void FunctionRecorder::emit_call(const Call& call, Tensor* results) {
  if (call.op->is(Trait::bookkeeping)) return emit_bookkeeping(call, results);
  note_saves(call);
  if (call.op->run_on_host && call.op->is(Trait::effect)) return emit_traceable(call, results);
  infer(call, results);
  if (call.op->is(Trait::view) && call.operands[0]->has_layout()) {
    TensorImpl& cell = results[0].impl();
    make_view(call, *call.operands[0], cell);  // first: it fails for a layout that does not allow the view
    if (call.op == &ops::info<ops::AsStrided> && has_written_ && root_of(cell).is_written) {
      const size_t before = graph_.nodes().size();
      cell.value_id = value_of(results[0]);  // of the memory: the operand's value may lie in another way
      if (graph_.nodes().size() > before) no_grad_.back() = !GradMode::is_enabled();
      return;
    }
    append_node(call, results);
    if (!has_written_) return;
    if (Root& root = root_of(cell); root.is_written)
      root.views.emplace_back(present_geometry(cell), cell.value_id);
    return;
  }
  append_node(call, results);
  for (int i = 0; i < call.outputs && !call.op->is(Trait::view); ++i) lay_out(results[i].impl());
}

// Of a leaf that is not of this recording each call adds one: it stays there.
void FunctionRecorder::hook_is_added(const TensorImpl& leaf, SourceLocation where) {
  if (!forward_ && !leaf.graph)
    cannot_record("register_hook", "it adds a hook to a leaf from outside", where);
}

// There is room for what is noted before anything is read: it is settled even where memory runs out behind it.
void FunctionRecorder::live_numbers(std::span<Scalar> out, const LiveNumbers& numbers) {
  RG_ASSERT(out.size() <= kMostLiveNumbers);
  RecordedFunction::Numbers noted{numbers, graph_.symbols.size(), static_cast<int>(out.size()), effects_};
  if (numbers_.size() == numbers_.capacity()) numbers_.reserve(2 * numbers_.size() + 4);
  graph_.symbols.reserve(out.size());
  numbers.read(out);
  for (Scalar& s : out) s = Scalar::symbol(graph_.symbols.add_symbol(s.number()), s.number());
  numbers_.push_back(std::move(noted));
}

// A backward is recorded when the function has run: too late to run that as it is.
void FunctionRecorder::cannot_record(std::string_view op, std::string_view why, SourceLocation where) {
  if (forward_) return GraphEmitter::cannot_record(op, why, where);
  if (not_recordable_.empty()) not_recordable_ = fmt::format("{} at {}: {}", op, to_string(where), why);
  throw NotRecordable(not_recordable_);
}

// Traceable functions and what retain_grad keeps are code that runs on recorded values, as it would on others.
void FunctionRecorder::emit_bookkeeping(const Call& call, Tensor* results) {
  if (call.op == &ops::hook) return emit_hook(call, results);
  if (call.op == &ops::pack) return emit_pack(call);
  if (call.op == &ops::unpack) return emit_unpack(call, results);
  if (call.op == &ops::function_backward) return emit_function_backward(call, results);
  if (call.op == &ops::retain_grad && forward_)
    return;  // what it would keep is of this graph, and not of a run
  if (call.op == &ops::accumulate_grad) {
    const Tensor grad(RefPtr<TensorImpl>(call.operands[0]));
    const bool is_cut = is_nested() && !GradMode::is_enabled();  // also where it is replayed
    return accumulate(*call.attrs_as<AccumulateGradAttrs>().leaf, is_cut ? grad.detach() : grad);
  }
  call.op->run_on_host(call, results);
}

// ---- the end -------------------------------------------------------------------------------------------------------------------------

// Values that have no memory of their own: inputs, views, what hooks gave.
std::vector<bool> FunctionRecorder::borrowed_values() const {
  std::vector<bool> borrowed(static_cast<size_t>(graph_.value_count()));
  for (const ir::Input& input : graph_.inputs())
    if (input.value != ir::kNoValue) borrowed[static_cast<size_t>(input.value)] = true;
  for (const ir::Node& node : graph_.nodes())
    if (node.op->is(Trait::view) || node.op->is(Trait::effect))
      for (int i = 0; i < node.results; ++i) borrowed[static_cast<size_t>(node.first_result + i)] = true;
  return borrowed;
}

int32_t FunctionRecorder::output(ir::ValueId value, bool must_own) {
  if (value != ir::kNoValue && must_own) {
    const bool is_known = static_cast<size_t>(value) < borrowed_.size();
    if ((is_known && borrowed_[static_cast<size_t>(value)]) || output_values_.contains(value))
      value = clone(computed(graph_.type(value), value)).impl().value_id;
  }
  outputs_.push_back(value);
  output_values_.insert(value);
  return static_cast<int32_t>(outputs_.size()) - 1;
}

// One for all that show it.
int32_t FunctionRecorder::output_of(Root& root) {
  if (root.output < 0) root.output = output(root.value, true);
  return root.output;
}

// Of each value, the one whose memory it shows: its own, or that of what it is a view of.
std::vector<ir::ValueId> FunctionRecorder::shown_values() const {
  std::vector<ir::ValueId> shown(static_cast<size_t>(graph_.value_count()));
  std::iota(shown.begin(), shown.end(), 0);
  for (const ir::Node& node : graph_.nodes())
    if (node.op->is(Trait::view))
      shown[static_cast<size_t>(node.first_result)] = shown[static_cast<size_t>(graph_.operands(node)[0])];
  return shown;
}

bool FunctionRecorder::depends_on_places() const {
  if (shares_memory_) return true;
  for (const auto& [storage, root] : roots_)
    if (root.is_written && root.arguments > 0) return true;
  const std::vector<ir::ValueId> shown = shown_values();
  std::unordered_set<ir::ValueId> given;
  for (const StandIn& s : stand_ins_) given.insert(s.tensor.impl().value_id);
  return std::ranges::any_of(graph_.nodes(), [&](const ir::Node& node) {
    return node.op == &ops::info<ops::AsStrided> &&
           given.contains(shown[static_cast<size_t>(graph_.operands(node)[0])]);
  });
}

std::vector<ir::ValueId> FunctionRecorder::saved_values() const {
  std::vector<ir::ValueId> values(saved_.size());
  for (const auto& [value, index] : saved_) values[static_cast<size_t>(index)] = value;
  return values;
}

// What an input held before it was written to is kept in memory of its own, if a backward needs it.
void FunctionRecorder::finish_saved(RecordedFunction& out) {
  std::vector<bool> is_overwritten(static_cast<size_t>(graph_.value_count()));
  for (const Root* root : root_order_) {
    if (!root->is_written || root->input < 0) continue;
    is_overwritten[static_cast<size_t>(graph_.inputs()[static_cast<size_t>(root->input)].value)] = true;
  }
  for (const StandIn& s : stand_ins_)
    if (const Root& root = roots_.at(s.tensor.impl().storage().get());
        s.argument >= 0 && root.is_written && root.input >= 0)
      is_overwritten[static_cast<size_t>(s.tensor.impl().value_id)] = true;
  const std::vector<ir::ValueId> shown = shown_values();
  out.saved.resize(saved_.size());
  for (const auto& [value, index] : saved_) {
    const RecordedFunction::Place& place = saved_places_[static_cast<size_t>(index)];
    const bool is_old = is_overwritten[static_cast<size_t>(shown[static_cast<size_t>(value)])];
    out.saved[static_cast<size_t>(index)] = {output(value, is_old && !place.defined()), place};
  }
}

void FunctionRecorder::finish(const Tensors& results, RecordedFunction& out) {
  NoGradGuard no_grad;
  Emitter::Scope scope(*this);
  borrowed_ = borrowed_values();
  const size_t of_function = graph_.nodes().size();
  for (const Tensor& r : results)
    if (forward_)
      output(value_of(r), false);
    else
      out.results.push_back(place(r));
  finish_grads(results, out);
  for (size_t i = 0; i < root_order_.size(); ++i) {
    Root& root = *root_order_[i];
    if (!root.is_written || root.input < 0) continue;
    check_alone(root);
    out.writes.push_back(
        {root.input, root.is_outside ? -1 : output(root.value, true), root.is_flat, root.was_outside});
  }
  for (const Root* root : root_order_)
    if (root->outside == root->storage.get()) versions_[root->outside] = root->storage->version();
  finish_saved(out);
  out.has_two_histories = has_two_histories_ || have_histories();
  restore();
  graph_.set_outputs(std::move(outputs_));
  for (RecordedFunction::Input& input : inputs_)
    if (input.grad_of || input.grad_of_argument >= 0) input.captured.reset();
  out.forward_numbers.assign(forward_numbers_.begin(), forward_numbers_.end());
  out.inputs = std::move(inputs_);
  out.numbers = std::exchange(numbers_, {});
  out.dependencies = std::move(dependencies_);
  finish_traceable(out);
  out.unpacked = std::move(unpacked_);
  out.saved_outside = std::move(saved_outside_);
  out.users = std::move(users_);
  out.host = std::move(host_);
  out.straight = std::move(straight_);
  no_grad_.resize(of_function);
  no_grad_.resize(graph_.nodes().size(), false);  // copies have the history of what they copy
  out.no_grad = std::move(no_grad_);
  is_finished_ = true;
  known_ = nullptr;
  end();
}

}  // namespace retrograd
