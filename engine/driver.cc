// See engine/driver.h. Driver::run is the loop; start reading there.
#include "engine/driver.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include <fmt/format.h>

#include "engine/anomaly.h"
#include "engine/autocast.h"
#include "engine/autograd.h"
#include "engine/basic_ops.h"
#include "engine/bookkeeping.h"
#include "engine/function.h"
#include "engine/recording.h"
#include "engine/region.h"
#include "engine/rule.h"
#include "engine/taper.h"

namespace retrograd::inline v0 {
namespace {

class Driver final : public LeafDelivery {
 public:
  Driver(const BackwardRequest& request, Walk& walk, Emitter& emitter, DriverObserver* observer = nullptr)
      : request_(request),
        walk_(walk),
        emitter_(emitter),
        observer_(observer),
        is_noted_(emitter.is_symbolic()),
        grads_(walk.grad_count()) {}

  Tensors run() {
    captured_.resize(request_.input_edges.size());
    for (size_t i = 0; i < request_.roots.size(); ++i)
      receive(request_.root_edges[i], Tensor(request_.cotangents[i]));
    run_leaves(Walk::kBeforeAll);
    return run_from(0);
  }

  std::vector<Place> early_leaves(const Record& record) override;
  void deliver(const Place& place, Tensor&& gradient) override;

  Tensors resume(BackwardState state) {
    grads_ = std::move(state.grads);
    captured_ = std::move(state.captured);
    next_leaf_ = state.next_leaf;
    size_t k = state.next_record;
    if (state.rule_is_done) {
      const Walk::Item& item = walk_.order()[k];
      std::span<Tensor> grads(grads_.data() + item.first_grad, item.record->outputs);
      with_context(*item.record,
                   [&] { finish_rule(*item.record, static_cast<uint32_t>(k), grads, state.given); });
      for (Tensor& g : grads) g.reset();
      ++k;
    }
    run_leaves(static_cast<int32_t>(k) - 1);
    return run_from(k);
  }

 private:
  using Hooks = std::vector<RefPtr<Hook>>;
  // The hooks of a record or leaf when it begins. post: only for a leaf.
  struct Lists {
    Hooks tensor, pre, post;
  };

  template <class F>
  static void with_context(const Record& record, const F& f) {
    try {
      f();
    } catch (Exception& e) {
      e.add_context(
          fmt::format("while differentiating {} made at {}", record.op->name, to_string(record.where())));
      throw;
    }
  }
  Tensors run_from(size_t k) {
    constexpr size_t kAhead = 4;  // the number of records that are prefetched
    const auto& order = walk_.order();
    for (; k < order.size(); ++k) {
      if (k + kAhead < order.size()) prefetch_record<false>(order[k + kAhead].record);
      if (order[k].runs || order[k].captured) run_record(order[k], static_cast<uint32_t>(k));
      if (leaf_is_due(static_cast<int32_t>(k))) run_leaves(static_cast<int32_t>(k));
    }
    return std::move(captured_);
  }
  void run_record(const Walk::Item& item, uint32_t ordinal);
  void run_rule(Record& record, uint32_t ordinal, const Hooks* pre_hooks, std::span<Tensor> grads);
  void finish_rule(Record& record, uint32_t ordinal, std::span<Tensor> grads, std::span<Tensor> given);
  bool leaf_is_due(int32_t after) const {
    return next_leaf_ < walk_.leaves().size() && walk_.leaves()[next_leaf_].after == after;
  }
  void run_leaves(int32_t after);
  void run_leaf(const Walk::Leaf& item, uint32_t index);
  void receive(const Edge& edge, Tensor&& grad);
  void capture(const Edge& edge, const Tensor& grad);
  void capture_results(Record& record, std::span<Tensor> grads);
  void tensor_hooks(const Hooks& hooks, std::span<Tensor> grads, const Record* record);
  void list_hooks(const Hooks& hooks, std::span<Tensor> grads, std::span<Tensor> grad_outputs);
  void emit_hook(HookAttrs attrs, std::span<TensorImpl* const> operands, std::span<Tensor> results);
  void origin(const Record& record, uint32_t ordinal, std::string_view part) {
    if (is_noted_) emitter_.at({&record, ordinal, part});
  }

  const BackwardRequest& request_;
  Walk& walk_;
  Emitter& emitter_;
  DriverObserver* observer_;
  bool is_noted_;  // the emitter asks to be told what is being done
  Tensors grads_;
  Tensors captured_;
  std::unordered_map<uintptr_t, std::vector<size_t>> inputs_at_;  // for many inputs: positions of each edge
  size_t next_leaf_ = 0;
  int32_t running_ = 0;  // place of the record whose rule runs
};

void Driver::receive(const Edge& edge, Tensor&& grad) {
  if (!grad.defined()) return;
  const uint32_t at = walk_.target(edge);
  if (at == SeqMap::kNone) return;
  Tensor& sum = grads_[at];
  if (!sum.defined()) {
    sum = std::move(grad);
  } else {
    TensorImpl* operands[] = {sum.get(), grad.get()};
    Tensor result;
    emitter_.emit(
        {&ops::accumulate, operands, nullptr, edge.record() ? edge.record()->where() : SourceLocation{}, 1},
        &result);
    sum = std::move(result);
  }
  if (observer_) observer_->arrived(at, sum);
}

void Driver::capture(const Edge& edge, const Tensor& grad) {
  const auto give = [&](size_t i) {
    captured_[i] = grad;
    if (observer_) observer_->captured(static_cast<uint32_t>(i), grad);
  };
  constexpr size_t kFew = 32;  // up to this number a linear search is faster than a map
  const std::vector<Edge>& wanted = request_.input_edges;
  if (captured_.size() <= kFew) {
    for (size_t i = 0; i < captured_.size(); ++i)
      if (wanted[i] == edge) give(i);
    return;
  }
  if (inputs_at_.empty())
    for (size_t i = 0; i < captured_.size(); ++i) inputs_at_[wanted[i].key()].push_back(i);
  if (const auto found = inputs_at_.find(edge.key()); found != inputs_at_.end())
    for (const size_t i : found->second) give(i);
}

void Driver::capture_results(Record& record, std::span<Tensor> grads) {
  for (uint32_t i = 0; i < grads.size(); ++i)
    if (grads[i].defined()) capture(Edge(&record, i), grads[i]);
}

// As in PyTorch, a user-defined function runs even when no gradient has reached it. A builtin op would give undefined
// gradients then.
bool runs_without_gradients(const Record& record) {
  return FunctionCall::made(record) ||
         (record.hooks && record.hooks->saved && record.hooks->saved->has_functions());
}

// As in PyTorch, the gradient of an input is captured before its tensor hooks when the record also runs, and after them
// when it does not.
void Driver::run_record(const Walk::Item& item, uint32_t ordinal) {
  Record& record = *item.record;
  std::span<Tensor> grads(grads_.data() + item.first_grad, record.outputs);
  bool any = false;
  for (const Tensor& g : grads) any |= g.defined();
  if (!any && !runs_without_gradients(record)) return;
  if (observer_) observer_->record_begins(ordinal);
  if (item.captured && (item.runs || request_.ends_at_inputs)) {
    capture_results(record, grads);
    if (request_.ends_at_inputs) {
      for (Tensor& g : grads) g.reset();
      return;
    }
  }
  std::optional<Lists> hooks;  // few records have any
  if (record.hooks) {
    hooks = Lists{record.hooks->tensor.snapshot(), record.hooks->pre.snapshot(), {}};
    origin(record, ordinal, "tensor hook");
    tensor_hooks(hooks->tensor, grads, &record);
    for (auto& [output_nr, box] : record.hooks->retained) {
      if (!grads[output_nr].defined()) continue;
      RetainGradAttrs attrs{{}, box.get()};
      TensorImpl* operand = grads[output_nr].get();
      emitter_.emit({&ops::retain_grad, {&operand, 1}, &attrs, record.where(), 0}, nullptr);
    }
  }
  if (item.captured && !item.runs) capture_results(record, grads);
  if (item.runs)
    with_context(record, [&] { run_rule(record, ordinal, hooks ? &hooks->pre : nullptr, grads); });
  for (Tensor& g : grads) g.reset();
}

void Driver::run_rule(Record& record, uint32_t ordinal, const Hooks* pre_hooks, std::span<Tensor> grads) {
  if (pre_hooks && !pre_hooks->empty()) {
    origin(record, ordinal, "pre hook");
    list_hooks(*pre_hooks, grads, {});
  }
  origin(record, ordinal, "rule");
  running_ = static_cast<int32_t>(ordinal);
  if (record.hooks && record.hooks->saved) record.hooks->saved->begin(!request_.retain_graph);
  RuleContext context(record, emitter_, grads.data());
  {
    const CallScope at(record.where());
    const UnknownLayouts as_when_recorded(true);
    record.op->vjp(context);
    context.unpack_the_rest();
  }
  if (observer_) observer_->rule_gave(ordinal, grads, context.given());
  context.drop_values();
  finish_rule(record, ordinal, grads, context.given());
}

// The slots are released first: as in a replay, where they are emptied one by one, what the rule needed is no longer
// held.
void Driver::finish_rule(Record& record, uint32_t ordinal, std::span<Tensor> grads, std::span<Tensor> given) {
  if (!request_.retain_graph) record.release_slots();
  if (record.hooks && !record.hooks->post.empty()) {
    origin(record, ordinal, "post hook");
    list_hooks(record.hooks->post.snapshot(), given, grads);
  }
  for (int i = 0; i < record.operands; ++i)
    if (record.edge(i)) receive(record.edge(i), std::move(given[i]));
}

void Driver::run_leaves(int32_t after) {
  const auto& leaves = walk_.leaves();
  for (; leaf_is_due(after); ++next_leaf_)
    if (leaves[next_leaf_].wanted) run_leaf(leaves[next_leaf_], static_cast<uint32_t>(next_leaf_));
}

void Driver::run_leaf(const Walk::Leaf& item, uint32_t index) {
  TensorImpl& leaf = *item.leaf;
  Tensor& grad = grads_[item.grad];
  if (!grad.defined()) return;
  if (is_noted_) emitter_.at({nullptr, index, "leaf"});
  if (observer_) observer_->leaf_begins(index);
  Lists hooks;
  Hooks post_accumulate;
  if (const AutogradMeta* meta = leaf.meta.get(); meta && meta->has_hooks()) {
    hooks = {meta->tensor_hooks.snapshot(), meta->pre_hooks.snapshot(), meta->post_hooks.snapshot()};
    post_accumulate = meta->post_accumulate_hooks.snapshot();
  }
  if (!request_.ends_at_inputs) tensor_hooks(hooks.tensor, {&grad, 1}, nullptr);
  if (!request_.accumulate) {
    capture(Edge(&leaf), grad);
    grad.reset();
    return;
  }
  list_hooks(hooks.pre, {&grad, 1}, {});
  Tensor kept = hooks.post.empty() ? Tensor() : grad;
  AccumulateGradAttrs attrs{{}, &leaf};
  TensorImpl* operand = grad.get();
  emitter_.emit({&ops::accumulate_grad, {&operand, 1}, &attrs, {}, 0}, nullptr);
  grad.reset();
  for (const RefPtr<Hook>& hook : post_accumulate)
    if (hook->is_live()) emit_hook({{}, hook.get(), &leaf}, {}, {});
  list_hooks(hooks.post, {}, {&kept, 1});
}

std::vector<LeafDelivery::Place> Driver::early_leaves(const Record& record) {
  const bool ends_eagerly = !observer_ && !is_noted_ && request_.accumulate && !request_.create_graph;
  if (!ends_eagerly || (record.hooks && !record.hooks->post.empty())) return {};
  constexpr int64_t kSmall = int64_t{1} << 16;  // bytes
  const auto is_consumed = [](const TensorImpl& leaf) {
    if (!leaf.meta) return false;
    if (leaf.meta->grad.defined() && leaf.meta->grad.nbytes() >= kSmall) return true;  // added, then freed
    return leaf.meta->has_hooks() && std::ranges::any_of(leaf.meta->post_accumulate_hooks.snapshot(),
                                                         [](const auto& h) { return h->is_live(); });
  };
  std::unordered_map<const TensorImpl*, Place> due;
  const auto& leaves = walk_.leaves();
  for (size_t i = next_leaf_; i < leaves.size() && leaves[i].after == running_; ++i)
    if (leaves[i].wanted && is_consumed(*leaves[i].leaf))
      due[leaves[i].leaf] = {-1, static_cast<uint32_t>(i), leaves[i].leaf};
  std::vector<Place> places;
  for (int i = 0; i < record.operands && !due.empty(); ++i) {
    const auto at = due.find(record.edge(i).leaf());
    if (at == due.end()) continue;
    if (at->second.operand >= 0) return {};  // two gradients of one leaf
    at->second.operand = i;
    places.push_back(at->second);
  }
  return places;
}

void Driver::deliver(const Place& place, Tensor&& gradient) {
  const CallScope::Suspend users_own_lines;
  const UnknownLayouts off(false);
  receive(Edge(place.leaf), std::move(gradient));
  run_leaf(walk_.leaves()[place.index], place.index);
}

void Driver::emit_hook(HookAttrs attrs, std::span<TensorImpl* const> operands, std::span<Tensor> results) {
  emitter_.emit({&ops::hook, operands, &attrs, {}, static_cast<int>(results.size())}, results.data());
}

// The tensor hooks of a record, or of a leaf when `record` is null. A user-defined function shows its hooks undefined
// gradients, too.
void Driver::tensor_hooks(const Hooks& hooks, std::span<Tensor> grads, const Record* record) {
  const bool shows_undefined = record && FunctionCall::made(*record);
  for (const RefPtr<Hook>& hook : hooks) {
    Tensor& grad = grads[record ? hook->output_nr : 0];
    if (!hook->is_live() || !(grad.defined() || shows_undefined)) continue;
    Tensor result;
    TensorImpl* operand = grad.get();
    emit_hook({{}, hook.get()}, {&operand, 1}, {&result, 1});
    grad = std::move(result);
  }
}

// Pre- and post-hooks: a hook may replace `grads`; a post-hook also sees `grad_outputs`.
void Driver::list_hooks(const Hooks& hooks, std::span<Tensor> grads, std::span<Tensor> grad_outputs) {
  for (const RefPtr<Hook>& hook : hooks) {
    if (!hook->is_live()) continue;
    std::vector<TensorImpl*> operands;
    for (const Tensor& g : grads) operands.push_back(g.get());
    for (const Tensor& g : grad_outputs) operands.push_back(g.get());
    Tensors results(grads.size());
    emit_hook({{}, hook.get(), nullptr, static_cast<int>(grads.size())}, operands, results);
    for (size_t i = 0; i < grads.size(); ++i) grads[i] = std::move(results[i]);
  }
}

constinit thread_local CurrentBackward* innermost_backward = nullptr;
constinit std::atomic<uint64_t> backward_count{0};

}  // namespace

CurrentBackward::CurrentBackward(const BackwardRequest* request, Walk* walk, Reach* reach, bool is_part)
    : request_(request),
      walk_(walk),
      reach_(reach),
      outer_(innermost_backward),
      whole_(is_part && outer_ ? outer_->whole_ : this),
      id_(backward_count.fetch_add(1) + 1) {
  innermost_backward = this;
}
Walk& CurrentBackward::walk() {
  RG_ASSERT(request_);
  if (!walk_) walk_ = (own_walk_ = std::make_unique<Walk>(request_->walk())).get();
  return *walk_;
}
CurrentBackward::~CurrentBackward() {
  unlink();
  forget_regions();
}
CurrentBackward* CurrentBackward::innermost() { return innermost_backward; }

// Objects of recorded backwards may end in any order when a run is aborted.
void CurrentBackward::unlink() {
  for (CurrentBackward** link = &innermost_backward; *link; link = &(*link)->outer_)
    if (*link == this) {
      *link = outer_;
      return;
    }
}

void CurrentBackward::add_region(RefPtr<Region> region) { whole_->regions_.push_back(std::move(region)); }

void CurrentBackward::forget_regions() noexcept {
  for (const RefPtr<Region>& region : regions_) region->forget(id_);
  regions_.clear();
}

void CurrentBackward::end() {
  forget_regions();
  for (size_t i = 0; i < callbacks_.size(); ++i) std::exchange(callbacks_[i], nullptr)();
  unlink();
}

Tensors run_backward(const BackwardRequest& request, Walk& walk, Emitter& emitter, DriverObserver* observer) {
  AutoGradMode mode(request.create_graph);
  const detail::AutocastOff no_casts;
  CurrentBackward current(request, walk);
  Emitter::Scope scope(emitter);
  Driver driver(request, walk, emitter, observer);
  current.set_delivery(&driver);
  Tensors gradients = driver.run();
  current.set_delivery(nullptr);
  current.end();
  return gradients;
}

Tensors run_backward(const BackwardRequest& request) {
  Walk walk = request.walk();
  Emitter& emitter = Emitter::current();
  if (Recording* recording = emitter.recording()) return recording->own_backward(request, walk);
  if (!autograd::DetectAnomalyGuard::is_enabled()) return run_backward(request, walk, emitter);
  if (request.accumulate) check_leaves(walk.reached().leaves);
  Watcher watcher(emitter);
  return run_backward(request, walk, watcher);
}

Tensors record_backward(const BackwardRequest& request, Walk& walk, Emitter& recorder,
                        DriverObserver* observer) {
  AutoGradMode mode(request.create_graph);
  const detail::AutocastOff no_casts;
  CurrentBackward current(request, walk);
  Taper taper(recorder);
  Emitter::Scope scope(taper);
  return Driver(request, walk, recorder, observer).run();
}

Tensors resume_backward(const BackwardRequest& request, Walk& walk, BackwardState state) {
  return Driver(request, walk, Emitter::current()).resume(std::move(state));
}

BackwardRequest make_request(const Tensors& roots, const Tensors& cotangents,
                             const std::optional<Tensors>& inputs, bool accumulate,
                             std::optional<bool> retain_graph, bool create_graph, SourceLocation where) {
  const std::string_view op = accumulate ? "backward" : "grad";
  if (roots.empty()) fail(Category::bad_argument, op, "there are no roots", where);
  if (inputs && inputs->empty()) fail(Category::bad_argument, op, "`inputs` cannot be empty", where);
  if (!cotangents.empty() && cotangents.size() != roots.size())
    fail(Category::cotangent_mismatch, op,
         fmt::format("{} roots but {} cotangents", roots.size(), cotangents.size()), where);
  BackwardRequest request{
      roots,        {}, {},   inputs.has_value(), {}, accumulate, retain_graph.value_or(create_graph),
      create_graph, {}, where};
  if (create_graph) request.pair = default_saved_tensor_hooks();
  for (size_t i = 0; i < roots.size(); ++i) {
    TensorImpl& root = roots[i].impl(op, where);
    request.root_edges.push_back(gradient_edge(root));
    if (!request.root_edges.back())
      fail(Category::no_grad_fn, op,
           fmt::format("root {} ({}) does not require a gradient", i, describe(roots[i])), where);
    Tensor cotangent = i < cotangents.size() ? cotangents[i] : Tensor();
    if (!cotangent.defined()) {
      if (root.numel().hint() != 1)
        fail(Category::non_scalar_backward_without_cotangent, op,
             fmt::format("root {} is {}: only a root of one element has a default cotangent", i,
                         describe(roots[i])),
             where);
      cotangent = basic::ones(root.type(), where);
    } else if (!(cotangent.impl().type() == root.type())) {
      fail(Category::cotangent_mismatch, op,
           fmt::format("the cotangent of root {} is {}, the root {}", i, describe(cotangent),
                       describe(roots[i])),
           where);
    }
    request.cotangents.push_back(std::move(cotangent));
  }
  if (inputs)
    for (const Tensor& input : *inputs) {
      if (input.impl(op, where); !input.requires_grad())
        fail(Category::no_grad_fn, op,
             fmt::format("an input ({}) does not require a gradient", describe(input)), where);
      Edge edge = gradient_edge(input.impl());
      if (!edge)
        edge = Edge(&input.impl());  // made under no_grad from a base that requires a gradient: never reached
      request.input_edges.push_back(std::move(edge));
      if (accumulate && !input.is_leaf()) input.retain_grad(where);
    }
  return request;
}

void finish_gradients(Tensors& gradients, const Tensors& inputs, bool allow_unused, bool materialize,
                      SourceLocation where) {
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (gradients[i].defined()) continue;
    if (materialize)
      gradients[i] = basic::zeros(inputs[i].impl().type(), where);
    else if (!allow_unused)
      fail(Category::unused_input, "grad",
           fmt::format("input {} is not part of the graph. Hint: allow_unused = true", i), where);
  }
}

}  // namespace retrograd
