// See tracer/function/function_recorder.h.
#include "tracer/function/function_recorder.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "engine/bookkeeping.h"
#include "engine/each_field.h"
#include "engine/runner.h"
#include "ops/arithmetic.h"
#include "ops/shape_ops.h"
#include "ops/views.h"

namespace retrograd::inline v0 {

FunctionRecorder::FunctionRecorder(ir::Graph& graph, const ArgumentSizes& sizes, SourceLocation where,
                                   const KnownCalls* known, PairForm pairs)
    : GraphEmitter(graph, false, where),
      forward_(nullptr),
      sizes_(sizes),
      pairs_(pairs),
      functions_(*this, known) {}

FunctionRecorder::FunctionRecorder(ir::Graph& graph, FunctionRecorder& forward)
    : GraphEmitter(graph, true, forward.where_),
      forward_(&forward),
      pairs_(forward.pairs_),
      functions_(*this, nullptr) {}

FunctionRecorder::~FunctionRecorder() {
  restore();
  RecordedFunction::settle_unused(numbers_, graph_);  // of an aborted recording
}

void FunctionRecorder::restore() {
  grads_.restore();
  for (const StandIn& s : inputs_.stand_ins())
    if (AutogradMeta* meta = s.tensor.impl().meta.get()) meta->grad.reset();
}

void FunctionRecorder::each_held(const std::function<void(const TensorImpl*)>& f) const {
  for (const StandIn& s : inputs_.stand_ins()) f(s.tensor.get()), f(s.leaf.get());
  for (const LeafGradients::Reached& r : grads_.reached()) f(r.leaf.get());
  functions_.each_held(f);
  host_.each_held(f);
  memory_.each_held(f);
}

void FunctionRecorder::check_recorded() const {
  if (!not_recordable_.empty()) throw NotRecordable(not_recordable_);
  functions_.check_known();
  if (live_size_) throw LiveSizeNeeded(live_size_);
}

bool FunctionRecorder::depends_on_locations() const {
  if (memory_.shares_memory()) return true;
  for (const Root* root : memory_.roots())
    if (root->is_written && root->arguments > 0) return true;
  const std::vector<ir::ValueId> shown = memory_.shown_values();
  std::unordered_set<ir::ValueId> given;
  for (const StandIn& s : inputs_.stand_ins()) given.insert(s.tensor.impl().value_id);
  return std::ranges::any_of(graph_.nodes(), [&](const ir::Node& node) {
    return node.op == &ops::info<ops::AsStrided> &&
           given.contains(shown[static_cast<size_t>(graph_.operands(node)[0])]);
  });
}

// ---- the driver ---------------------------------------------------------------------------------------------------

void FunctionRecorder::at(const Origin& origin) {
  if (is_nested()) return;  // its nodes belong to the code that started it
  position_.at_leaf = !origin.record;
  if (position_.at_leaf && !forward_) grads_.note_reached(*position_.walk->leaves()[origin.ordinal].leaf);
  if (origin.record != position_.running && origin.record && origin.record->slots)
    reads_.unpacked.push_back(origin.record);
  position_.running = origin.record;
  position_.origin =
      origin.record ? graph_.add_origin({origin.record->op->name, origin.ordinal, origin.part}) : -1;
}

Tensors FunctionRecorder::own_backward(const BackwardRequest& request, Walk& walk) {
  if (forward_) return GraphEmitter::own_backward(request, walk);
  Tensors gradients =
      host_.backwards().within(request, walk, [&] { return GraphEmitter::own_backward(request, walk); });
  for (Tensor& g : gradients)  // results of opaque code may have any layout
    if (g.defined() && !g.impl().has_layout()) g = present_value(contiguous(g).impl());
  return gradients;
}

Tensors FunctionRecorder::backward_of_function(const BackwardRequest& request, Walk& walk) {
  return host_.backwards().within(request, walk, [&] { return record_backward(request, walk, *this); });
}

// ---- calls --------------------------------------------------------------------------------------------------------

void FunctionRecorder::note_node(bool has_history) {
  no_grad_.resize(graph_.nodes().size(), !has_history);
  no_grad_.back() = !has_history;
}

void FunctionRecorder::emit(const Call& call, Tensor* results) {
  emit_call(call, results);
  no_grad_.resize(graph_.nodes().size(), !GradMode::is_enabled());
}

void FunctionRecorder::emit_call(const Call& call, Tensor* results) {
  if (call.op->is(Trait::bookkeeping)) return emit_bookkeeping(call, results);
  host_.versions().note_call(call);
  if (call.op->run_on_host && call.op->is(Trait::effect)) return functions_.emit_traceable(call, results);
  infer(call, results);
  check_sizes_of(call, results);
  if (call.op->is(Trait::view) && call.operands[0]->has_layout()) return emit_view(call, results);
  append_node(call, results);
  for (int i = 0; i < call.outputs && !call.op->is(Trait::view); ++i) memory_.lay_out(results[i].impl());
}

// Sizes follow from those of arguments: a plan is not made again for another number.
void FunctionRecorder::check_sizes_of(const Call& call, const Tensor* results) {
  const int32_t sizes = recorded_sizes().count();
  for (int i = 0; i < call.outputs; ++i)
    for (const Dim d : results[i].impl().shape())
      if (d.is_symbolic() && graph_.symbols.expr(d.id()).last_symbol >= sizes)
        refuse_size(call, graph_.symbols.expr(d.id()).last_symbol);
}

// A live integer can be a size; other numbers that each run reads cannot.
void FunctionRecorder::refuse_size(const Call& call, int32_t symbol) {
  for (const RecordedFunction::Numbers& n : numbers_)
    if (n.live.integer && sizes_.has_live() && graph_.symbols.expr(n.first).last_symbol == symbol)
      need_live_size(n.live.integer);
  fail(Category::unsupported, call.op->name,
       "a size follows from a live number. Hint: Live<int64_t>, or Live::value(), with which another number "
       "is another recording",
       call.where);
}

void FunctionRecorder::need_live_size(const LiveInteger& number) {
  live_size_ = number;
  throw LiveSizeNeeded(number);
}

// A view of memory that was written to is a view of its current value: the operand's value may have another layout.
void FunctionRecorder::emit_view(const Call& call, Tensor* results) {
  TensorImpl& cell = results[0].impl();
  make_view(call, *call.operands[0], cell);  // first: throws if the layout does not allow the view
  if (call.op == &ops::info<ops::AsStrided> && has_written_ && memory_.root_of(cell).is_written) {
    const size_t before = graph_.nodes().size();
    cell.value_id = value_of(results[0]);
    if (graph_.nodes().size() > before) note_node(GradMode::is_enabled());
    return;
  }
  append_node(call, results);
  if (!has_written_) return;
  if (Root& root = memory_.root_of(cell); root.is_written)
    root.views.emplace_back(geometry_of_cell(cell), cell.value_id);
}

// Traceable functions and retain_grad run on recorded values as on any others.
void FunctionRecorder::emit_bookkeeping(const Call& call, Tensor* results) {
  if (call.op == &ops::hook) return host_.emit_hook(call, results);
  if (call.op == &ops::pack) return host_.packs().emit_pack(call);
  if (call.op == &ops::unpack) return host_.packs().emit_unpack(call, results);
  if (call.op == &ops::function_backward) return functions_.emit_backward(call, results);
  if (call.op == &ops::retain_grad && forward_) return;  // it would keep a value of this graph, not of a run
  if (call.op == &ops::accumulate_grad) {
    const Tensor grad(RefPtr<TensorImpl>(call.operands[0]));
    const bool is_cut = is_nested() && !GradMode::is_enabled();  // also where it is replayed
    return grads_.accumulate(*call.attrs_as<AccumulateGradAttrs>().leaf, is_cut ? grad.detach() : grad);
  }
  call.op->run_on_host(call, results);
}

ir::ValueId FunctionRecorder::value_of(const Tensor& tensor) {
  return read(tensor, tensor.defined() && tensor.requires_grad());
}

ir::ValueId FunctionRecorder::read(const Tensor& tensor, bool has_history) {
  if (!tensor.defined()) return ir::kNoValue;
  TensorImpl& cell = tensor.impl();
  if (cell.graph == id_ && cell.value_id != ir::kNoValue && (!has_written_ || !cell.has_layout()))
    return cell.value_id;
  if (!forward_ || (cell.graph != forward_->id_ && !forward_->memory_.is_gradient(cell)))
    return memory_.value_of(cell, has_history);
  const int32_t number = forward_->index_of_saved(tensor, position_.running);
  if (position_.running) reads_.users.emplace_back(number, position_.running);
  return inputs_.of_saved(number, cell.type());
}

void FunctionRecorder::note_users(const Tensor& tensor, const std::vector<const Record*>& users) {
  if (tensor.impl().graph == id_) return;
  const int32_t number = forward_->index_of_saved(tensor, nullptr);
  inputs_.of_saved(number, tensor.impl().type());
  for (const Record* user : users) reads_.users.emplace_back(number, user);
}

// Comparing layouts may add to the table. When the recording is over, other threads read that of the graph.
int32_t FunctionRecorder::index_of_saved(const Tensor& tensor, const Record* user) {
  if (saved_.is_finished() && !later_symbols_) later_symbols_ = graph_.symbols;
  const SymbolTable::Scope scope(later_symbols_ ? &*later_symbols_ : &graph_.symbols);
  return saved_.index_of(tensor, user);
}

void FunctionRecorder::write(TensorImpl& self, const Tensor& result, SourceLocation where) {
  functions_.check_write(self.storage().get(), where);
  memory_.write(self, result, where);
}

Tensor FunctionRecorder::host_values(const TensorImpl& cell) const {
  const Tensor values = memory_.host_values(cell);
  return values.defined() || !forward_ ? values : forward_->memory_.host_values(cell);
}

void FunctionRecorder::geometry_changes(const TensorImpl& self, SourceLocation where) {
  if (self.graph != id_ || inputs_.stand_ins().of_tensor(&self))
    cannot_record("geometry", "it changes the sizes or strides of a tensor from outside", where);
}

bool FunctionRecorder::writes_to(const Storage& memory) const {
  return (forward_ ? forward_->memory_ : memory_).outside_writes().contains(&memory);
}

// A hook on a leaf that is not of this recording stays there: each call adds one.
void FunctionRecorder::hook_is_added(const TensorImpl& leaf, SourceLocation where) {
  if (!forward_ && !leaf.graph)
    cannot_record("register_hook", "it adds a hook to a leaf from outside", where);
}

// Space for the note is reserved before anything is read: so the numbers are settled even if memory runs out
// afterwards.
void FunctionRecorder::live_numbers(std::span<Scalar> out, const LiveNumbers& numbers) {
  RG_ASSERT(out.size() <= LiveNumbers::kMost);
  if (const std::optional<Dim> size = recorded_sizes().of_live(numbers.integer)) {
    out[0] = *size;
    return;
  }
  RecordedFunction::Numbers noted{numbers, graph_.symbols.size(), static_cast<int>(out.size()), effects_};
  if (numbers_.size() == numbers_.capacity()) numbers_.reserve(2 * numbers_.size() + 4);
  graph_.symbols.reserve(out.size());
  numbers.read(out);
  for (Scalar& s : out) s = Scalar::symbol(graph_.symbols.add_symbol(s.number()), s.number());
  numbers_.push_back(std::move(noted));
}

Dim FunctionRecorder::live_size(const LiveInteger& number, SourceLocation where) {
  if (const std::optional<Dim> size = recorded_sizes().of_live(number)) return *size;
  if (forward_) cannot_record("Live", "a live number is a size in the backward only", where);
  if (!sizes_.has_live()) {
    const int64_t now = *number;
    depends_on([number, now] { return *number == now; }, "a live number that was used as a size has changed");
    return now;
  }
  need_live_size(number);
}

// A backward is recorded after the function has run: too late to run the function eagerly.
void FunctionRecorder::cannot_record(std::string_view op, std::string_view why, SourceLocation where) {
  if (forward_) return GraphEmitter::cannot_record(op, why, where);
  if (not_recordable_.empty()) not_recordable_ = fmt::format("{} at {}: {}", op, to_string(where), why);
  throw NotRecordable(not_recordable_);
}

void FunctionRecorder::depends_on(std::function<bool()> holds, std::string_view what) {
  dependencies_.push_back({std::move(holds), what});
}

// ---- the end ------------------------------------------------------------------------------------------------------

void FunctionRecorder::finish(const Tensors& results, RecordedFunction& out) {
  NoGradGuard no_grad;
  Emitter::Scope scope(*this);
  outputs_.begin();
  const size_t of_function = graph_.nodes().size();
  for (const Tensor& r : results)
    if (forward_)
      outputs_.add(value_of(r), false);
    else
      out.results.push_back(memory_.location_of(r));
  grads_.finish(results, out);
  for (size_t i = 0; i < memory_.roots().size(); ++i) {
    Root& root = *memory_.roots()[i];
    if (!root.is_written || root.input < 0) continue;
    memory_.check_alone(root);
    out.writes.push_back(
        {root.input, root.is_outside ? -1 : outputs_.add(root.value, true), root.is_flat, root.was_outside});
  }
  memory_.note_versions();
  saved_.finish(out);
  out.has_two_histories = memory_.has_two_histories();
  restore();
  graph_.set_outputs(outputs_.take());
  out.outside = outside_;
  out.inputs = inputs_.take();
  out.numbers = std::exchange(numbers_, {});
  out.dependencies = std::move(dependencies_);
  functions_.finish(out);
  if (!forward_) out.kept_arguments = host_.packs().take_kept_arguments();
  out.reads = std::move(reads_);
  no_grad_.resize(of_function);
  no_grad_.resize(graph_.nodes().size(), false);  // copies have the history of their source
  out.no_grad = std::move(no_grad_);
  end();
}

}  // namespace retrograd
