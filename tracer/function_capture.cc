// Recording: see tracer/function_capture.h; start reading at FunctionCapture::record.
#include "tracer/function_ahead.h"
#include "tracer/function_saved.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/inplace.h"
#include "engine/runner.h"
#include "engine/taper.h"
#include "ir/verify.h"

namespace retrograd {

FunctionCapture::FunctionCapture(const Function& function, const Tensors& arguments, CallLook look,
                                 FunctionKind kind, const FunctionRecorder::KnownCalls* known,
                                 SourceLocation where)
    : kind_(kind), where_(where), look_(std::move(look)) {
  for (size_t i = 0; i < arguments.size(); ++i)
    if (kind == FunctionKind::step && !look_.arguments[i].is_leaf)
      fail(Category::unsupported, "compile_step",
           fmt::format("argument {} of a recorded step has a history, {}. Hint: detach it", i,
                       describe(arguments[i])),
           where);
  recorded_.graph.name = kind == FunctionKind::step ? "step" : "function";
  try {
    record(function, arguments, known);
    check_kept();
    if (backwards_.empty()) forget_recording();
    make_plans(arguments);
  } catch (...) {
    settle_recorded();
    throw;
  }
}

// What the recording has read, where no run came to use it.
void FunctionCapture::settle_recorded() noexcept {
  if (std::exchange(numbers_are_open_, false))
    RecordedFunction::settle_unused(recorded_.numbers, recorded_.graph);
}

void FunctionCapture::make_plans(const Tensors& arguments) {
  ir::verify(recorded_.graph);
  for (const RecordedFunction::Input& input : recorded_.inputs)
    if (input.captured.defined())
      outside_.emplace_back(input.captured.get(), TensorLook(input.captured.impl()));
  for (const RecordedFunction::Write& w : recorded_.writes)
    if (const Tensor& t = recorded_.inputs[static_cast<size_t>(w.input)].captured; t.defined())
      written_.insert(t.impl().storage().get());
  const Tensors grads = grads_at_begin(arguments);
  for (TensorPlace& place : places_of_grads(arguments, grads)) {
    if (place.memory < arguments.size()) places_ = TensorPlace::of(arguments);
    grads_.emplace_back(TensorLook(grads[grads_.size()].impl()), std::move(place));
  }
  numbers_ = RecordedFunction::hints(recorded_.graph);
  plan_forward(arguments);
  const auto effects = [](const ir::Graph& graph) {
    return RecordedFunction::effects_among(graph, graph.nodes().size());
  };
  RG_ASSERT(effects(planned_) == effects(recorded_.graph));
  for (auto& [ends, backward] : backwards_)
    if (!backward->error) plan_backward(*backward);
  find_ahead();
}

FunctionCapture::~FunctionCapture() { settle_recorded(); }

void FunctionCapture::record(const Function& function, const Tensors& arguments,
                             const FunctionRecorder::KnownCalls* known) {
  recorder_ = std::make_unique<FunctionRecorder>(recorded_.graph, where_, known);
  {
    const Tensors stand_ins = recorder_->arguments(arguments);
    Taper taper(*recorder_);
    Emitter::Scope scope(taper);
    FunctionCall::Observer::Scope functions(recorder_.get());
    const detail::RecordedWrites cannot_be_read(recorder_->outside_writes());
    Tensors results = function(stand_ins);
    recorder_->check_recorded();
    check_argument_hooks();
    recorder_->check_shown(results);
    look_at_results(stand_ins, std::move(results));
  }
  std::unordered_map<const TensorImpl*, std::vector<size_t>> numbers;  // of leaves in reached_
  for (const FunctionRecorder::BegunLeaf& leaf : recorder_->begun_leaves()) note_reached(leaf, numbers);
  if (std::ranges::any_of(ends_, &End::is_differentiable)) {
    find_inputs();
    record_backwards();
    find_functions();
  }
  Tensors recorded;
  for (const End& e : ends_) recorded.push_back(e.recorded);
  calls_code_ = recorder_->calls_code();
  recorder_->finish(recorded, recorded_);
  for (size_t i = 0; i < ends_.size(); ++i) {
    End& e = ends_[i];
    e.place = std::move(recorded_.results[i]);
    if (!e.grad_of) continue;
    const auto& grads = recorded_.grads;
    e.grad = std::ranges::find(grads, e.grad_of, &RecordedFunction::Grad::leaf) - grads.begin();
    RG_ASSERT(e.grad < grads.size());
    e.grad_of.reset();
  }
  if (recorder_->depends_on_places()) places_ = TensorPlace::of(arguments);
}

// Hooks of an argument stay with it, and are called by backwards outside: not those of its stand-in.
void FunctionCapture::check_argument_hooks() const {
  for (const FunctionRecorder::StandIn& s : recorder_->stand_ins())
    if (s.leaf.get() == s.tensor.get() && live_hooks(s.tensor.impl()) != live_hooks(*s.stands_for))
      throw NotRecordable("it registers a hook on an argument, or removes one");
}

void FunctionCapture::forget_recording() {
  recorder_.reset();
  for (End& e : ends_) e.recorded.reset();
}

// Once for each leaf, unless its hooks change between two of the function's backwards.
void FunctionCapture::note_reached(const FunctionRecorder::BegunLeaf& begun,
                                   std::unordered_map<const TensorImpl*, std::vector<size_t>>& numbers) {
  ReachedLeaf reached{begun.leaf, -1, begun.hooks, {}, begun.effects};
  if (begun.leaf->graph) {
    const FunctionRecorder::StandIn* const of = recorder_->stand_ins().of_tensor(begun.leaf.get());
    if (!of || of->argument < 0) return;
    reached.outside.reset();
    reached.argument = of->argument;
  }
  for (const RefPtr<Hook>& h : begun.hooks) reached.is_traceable.push_back(h->traceable);
  std::vector<size_t>& known = numbers[begun.leaf.get()];
  for (const size_t i : known)
    if (reached_[i].hooks == reached.hooks) {
      reached_[i].effects = reached.effects;
      return;
    }
  known.push_back(reached_.size());
  reached_.push_back(std::move(reached));
}

bool FunctionCapture::is_made_leaf(const Tensor& made) const {
  const TensorImpl& cell = made.impl();
  if (!cell.requires_grad || cell.grad_fn) return false;
  if (cell.meta && cell.meta->has_hooks())
    fail(
        Category::unsupported, "compile",
        fmt::format("a recorded function registers hooks on {}, a leaf that it makes. Hint: register them on "
                    "the result",
                    describe(made)),
        where_);
  return true;
}

void FunctionCapture::look_at_results(const Tensors& given, Tensors results) {
  results_ = results.size();
  std::unordered_map<const TensorImpl*, int> arguments, before;  // the first of each
  for (size_t i = 0; i < given.size(); ++i) arguments.try_emplace(given[i].get(), static_cast<int>(i));
  for (size_t i = 0; i < results.size(); ++i) {
    End end;
    const auto argument = arguments.find(results[i].get());
    const auto [same, is_first] = before.try_emplace(results[i].get(), static_cast<int>(i));
    end.grad_of = results[i].defined() && !results[i].requires_grad() ? recorder_->leaf_with_grad(results[i])
                                                                      : RefPtr<TensorImpl>();
    if (results[i].defined() && argument != arguments.end())
      end.argument = argument->second;
    else if (end.grad_of)
      end.recorded = results[i].impl().graph ? results[i] : Tensor();
    else if (results[i].defined() && !results[i].impl().graph)
      end.outside = results[i];
    else if (results[i].defined() && !is_first)
      end.same_as = same->second;
    else
      end.recorded = results[i];
    ends_.push_back(std::move(end));
  }
  for (End& e : ends_) e.is_leaf = e.recorded.defined() && is_made_leaf(e.recorded);
  if (kind_ == FunctionKind::step) return;
  EndNumbers numbers = end_numbers();
  for (size_t i = 0; i < results_; ++i)
    if (ends_[i].recorded.defined() && ends_[i].recorded.impl().base) find_base(i, numbers);
  find_written();
  numbers = end_numbers();
  for (End& e : ends_) {
    if (!e.recorded.defined()) continue;
    const TensorImpl& cell = e.recorded.impl();
    e.is_outdated = cell.base && cell.made_at_version() != cell.storage()->version();
    if (!e.is_outdated || !cell.is_fixed_view())
      gradient_edge(e.recorded.impl());  // of a view that is out of date, made anew
    e.follows_base = e.base_argument >= 0 && is_view_of_written(cell, numbers);
    e.is_differentiable = look_.gradients && cell.requires_grad && cell.grad_fn && !e.follows_base;
    e.is_leaf = is_made_leaf(e.recorded);  // once more: a view that was made anew has a history now
    e.is_multi_output_view = cell.is_multi_output_view;
    e.is_no_grad_view = cell.is_no_grad_view;
    e.is_function_view = cell.is_function_view;
  }
}

FunctionCapture::EndNumbers FunctionCapture::end_numbers() const {
  EndNumbers numbers;
  for (size_t i = 0; i < ends_.size(); ++i)
    if (ends_[i].recorded.defined()) numbers.try_emplace(ends_[i].recorded.get(), i);
  return numbers;
}

// Whether a result shows the new value of an argument, or of its base, and nothing looks at the gradient in between: it goes to the new value.
bool FunctionCapture::is_view_of_written(const TensorImpl& view, const EndNumbers& numbers) const {
  const auto written = numbers.find(view.base.get());
  if (written == numbers.end() || ends_[written->second].rewrites < 0) return false;
  const Record* record = view.grad_fn.get();
  while (record && record != view.base->grad_fn.get()) {
    if (!record->op->is(Trait::view) || record->operands != 1 || record->hooks) return false;
    record = record->edge(0).record();
  }
  return record;
}

// The base of a view: an argument or its base, another result, a tensor from outside, or else a hidden end.
void FunctionCapture::find_base(size_t end, EndNumbers& numbers) {
  const RefPtr<TensorImpl> base = ends_[end].recorded.impl().base;
  if (const FunctionRecorder::StandIn* s = recorder_->stand_ins().of_tensor(base.get())) {
    ends_[end].base_argument = s->argument >= 0 ? s->argument : s->base_of;
    return;
  }
  const RefPtr<TensorImpl> grad_of = recorder_->leaf_with_grad(Tensor(base));
  if (!base->graph && !grad_of) {
    ends_[end].base_outside = Tensor(base);
    return;
  }
  if (grad_of) {
    const auto found = std::ranges::find(ends_, grad_of, &End::grad_of);
    ends_[end].base = static_cast<int>(found - ends_.begin());
    if (found != ends_.end()) return;
  } else {
    const auto [number, is_new] = numbers.try_emplace(base.get(), ends_.size());
    ends_[end].base = static_cast<int>(number->second);
    if (!is_new) return;
  }
  ends_.emplace_back();
  if (base->graph) ends_.back().recorded = Tensor(base);
  ends_.back().grad_of = grad_of;
}

// Arguments, or bases of arguments, that have another history now.
void FunctionCapture::find_written() {
  for (const FunctionRecorder::StandIn& s : recorder_->stand_ins()) {
    const RefPtr<Record>& now = s.tensor.impl().grad_fn;
    if (s.tensor.impl().base || !now || now.get() == s.history.get()) continue;
    End end;
    end.recorded = s.tensor;
    end.rewrites = s.argument >= 0 ? s.argument : s.base_of;
    end.rewrites_base = s.argument < 0;
    ends_.push_back(std::move(end));
  }
}

// The operands of the record: arguments that want a gradient, bases that were written to, leaves from outside.
void FunctionCapture::find_inputs() {
  for (const FunctionRecorder::StandIn& s : recorder_->stand_ins()) {
    if (!s.leaf.defined() || (s.argument < 0 && s.tensor.impl().grad_fn.get() == s.history.get())) continue;
    leaves_.push_back(s.leaf);
    inputs_.push_back(recorder_->input_of(s.tensor));
  }
  for (const auto& [leaf, input] : recorder_->captured_leaves()) {
    leaves_.push_back(leaf);
    inputs_.push_back(input);
  }
  find_made_leaves();
}

// Leaves that the function makes: as ends, so that gradients find the leaf that a run has made.
void FunctionCapture::find_made_leaves() {
  std::vector<Edge> edges;
  for (const End& e : ends_)
    if (e.is_differentiable && !is_outdated(e.recorded.impl()))
      edges.push_back(gradient_edge(e.recorded.impl()));
  const Walk walk(edges, nullptr);
  std::unordered_set<const TensorImpl*> known;
  for (const Tensor& leaf : leaves_) known.insert(leaf.get());
  for (const Walk::Leaf& leaf : walk.leaves()) {
    if (!leaf.leaf->graph || known.contains(leaf.leaf)) continue;
    const auto& stand_ins = recorder_->stand_ins();
    if (stand_ins.of_tensor(leaf.leaf) || stand_ins.of_leaf(leaf.leaf) || leaf.leaf->value_id == ir::kNoValue)
      continue;
    auto end = std::ranges::find(ends_, leaf.leaf, [](const End& e) { return e.recorded.get(); });
    if (end == ends_.end()) {
      ends_.emplace_back();
      end = ends_.end() - 1;
      end->recorded = Tensor(RefPtr<TensorImpl>(leaf.leaf));
      end->is_leaf = is_made_leaf(end->recorded);
    }
    made_leaves_.push_back(static_cast<size_t>(end - ends_.begin()));
    leaves_.push_back(end->recorded);
  }
}

// For all ends, and where that is an error, for each: what other sets save is known then.
void FunctionCapture::record_backwards() {
  const Arrivals all = all_ends();
  const auto record = [&](const Arrivals& ends) {
    std::unique_ptr<Backward>& backward = backwards_[ends];
    try {
      backward = record_backward(ends);
    } catch (const Error& e) {
      backward = std::make_unique<Backward>();
      backward->error = e;
    }
    return !backward->error;
  };
  if (record(all) || std::ranges::count(all, Arrival::with_gradient) == 1) return;
  for (size_t i = 0; i < all.size(); ++i) {
    Arrivals one(all.size());
    one[i] = all[i];
    if (all[i] != Arrival::none) record(one);
  }
}

// Of the user's, behind any end.
void FunctionCapture::find_functions() {
  std::vector<Edge> edges;
  for (const End& e : ends_) edges.push_back(e.edge);
  const Walk walk(edges, nullptr);
  has_functions_ = std::ranges::any_of(
      walk.order(), [](const Walk::Item& item) { return FunctionCall::made(*item.record); });
}

FunctionCapture::Arrivals FunctionCapture::all_ends() const {
  Arrivals all;
  for (const End& e : ends_) all.push_back(e.is_differentiable ? Arrival::with_gradient : Arrival::none);
  return all;
}

// Whether an end without a gradient is reached matters to functions of the user's alone; the walk of the backward that runs says so.
FunctionCapture::Arrivals FunctionCapture::arrivals_at(const Record& record,
                                                       std::span<TensorImpl* const> cotangents) const {
  Arrivals arrivals = all_ends();
  for (size_t i = 0; i < arrivals.size(); ++i)
    if (!cotangents[i]) arrivals[i] = Arrival::none;
  CurrentBackward* current = CurrentBackward::innermost();
  if (!has_functions_ || !current || arrivals == all_ends()) return arrivals;
  for (const Walk::Item& item : current->walk().order()) {
    if (item.record == &record) break;
    for (int k = 0; k < item.record->operands && item.runs; ++k) {
      const Edge& edge = item.record->edge(k);
      if (edge.record() != &record || !ends_[edge.output_nr()].is_differentiable) continue;
      Arrival& arrival = arrivals[edge.output_nr()];
      if (arrival == Arrival::none) arrival = Arrival::without_gradient;
    }
  }
  return arrivals;
}

std::unique_ptr<FunctionCapture::Backward> FunctionCapture::record_backward(const Arrivals& arrivals) {
  auto backward = std::make_unique<Backward>();
  backward->recorded.graph.name = "backward";
  FunctionRecorder recorder(backward->recorded.graph, *recorder_);
  BackwardRequest request;
  request.to_inputs = request.retain_graph = true;
  request.accumulate = false;
  for (size_t i = 0; i < ends_.size(); ++i) {
    if (arrivals[i] == Arrival::none) continue;
    const Tensor& end = ends_[i].recorded;
    if (!ends_[i].edge)
      ends_[i].edge = gradient_edge(end.impl());  // a view of memory from outside goes out of date
    request.roots.push_back(end);
    request.root_edges.push_back(ends_[i].edge);
    request.cotangents.push_back(arrivals[i] == Arrival::with_gradient
                                     ? recorder.cotangent(end.impl().type(), static_cast<int>(i))
                                     : Tensor());
  }
  for (const Tensor& leaf : leaves_) request.input_edges.push_back(gradient_edge(leaf.impl()));
  Walk walk = request.walk();
  recorder.finish(recorder.backward_of_function(request, walk), backward->recorded);
  RecordedFunction::settle_unused(backward->recorded.numbers, backward->recorded.graph);
  ir::verify(backward->recorded.graph);
  backward->numbers = RecordedFunction::hints(backward->recorded.graph);
  for (const auto& [value, user] : backward->recorded.users) note_user(static_cast<size_t>(value), user);
  return backward;
}

// Row-major memory that nothing else is bound to.
std::vector<WrittenInput> FunctionCapture::written_inputs(const Tensors& arguments) const {
  std::vector<WrittenInput> written;
  const std::vector<ir::Binding> bindings = bind(arguments);
  std::unordered_map<const Storage*, int> bound;  // how often
  for (const ir::Binding& b : bindings)
    if (b.tensor.defined()) ++bound[b.tensor.impl().storage().get()];
  for (const RecordedFunction::Write& w : recorded_.writes) {
    const Tensor& target = bindings[static_cast<size_t>(w.input)].tensor;
    if (target.is_contiguous() && w.may_lie_there() && bound.at(target.impl().storage().get()) == 1)
      written.push_back({planned_.inputs()[static_cast<size_t>(w.input)].value,
                         planned_.outputs()[static_cast<size_t>(w.output)]});
  }
  return written;
}

const ir::Graph* FunctionCapture::backward_graph() const {
  const auto it = backwards_.find(all_ends());
  return it == backwards_.end() || it->second->error ? nullptr : &it->second->planned;
}

}  // namespace retrograd
