// The record of a compiled function and its backward: see tracer/function/sized_function.h; start reading at link,
// then run_backward.
//
// The record is one opaque node for every emitter. Its backward runs the plan of the captured graph on the saved
// values; if its gradients are to be differentiated again, forward and backward graph are replayed into the current
// emitter. Then gradients of saved values reach the arguments without passing hooks on the results.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "engine/bookkeeping.h"
#include "engine/inplace.h"
#include "engine/rule.h"
#include "engine/runner.h"
#include "ops/shape_ops.h"
#include "tracer/function/early_gradients.h"
#include "tracer/function/opaque_value.h"
#include "tracer/function/run_numbers.h"
#include "tracer/function/sized_function.h"
#include "tracer/observe/profile.h"

namespace retrograd::inline v0 {
namespace {

struct CompiledAttrs {
  const Tensors* results;  // while the record is made
};

void give_results(const Call& call, Tensor* results) {
  std::ranges::copy(*call.attrs_as<CompiledAttrs>().results, results);
}

// One opaque node for every emitter, also for that of a captured backward.
void compiled_vjp(RuleContext& rule) {
  Record& record = rule.record();
  Tensors held;
  for (int i = 0; i < rule.outputs(); ++i) held.push_back(rule.grad(i));
  std::vector<TensorImpl*> operands;
  for (const Tensor& t : held) operands.push_back(t.get());
  FunctionBackwardAttrs attrs{{}, &record};
  Tensors results(record.operands);
  Emitter::current().emit({&ops::function_backward, operands, &attrs, record.where(), record.operands},
                          results.data());
  for (int i = 0; i < record.operands; ++i)
    if (rule.needs(i)) rule.give(i, std::move(results[static_cast<size_t>(i)]));
}

constexpr OpInfo compiled_info() {
  OpInfo info;
  info.name = "compiled";
  info.traits = static_cast<uint32_t>(Trait::effect);
  info.arity = info.outputs = -1;
  info.attrs_size = sizeof(CompiledAttrs);
  info.run_on_host = give_results;
  info.vjp = compiled_vjp;
  info.host_backward = SizedFunction::run_backward;
  info.doc = "a compiled function";
  return info;
}
constinit const OpInfo compiled = compiled_info();

// A cell for `value` with the place in the graph of `place`.
Tensor with_place_of(const Tensor& value, const Tensor& place) {
  Tensor made = seen(value.impl());
  TensorImpl &cell = made.impl(), &from = place.impl();
  cell.requires_grad = from.requires_grad;
  cell.grad_fn = from.grad_fn;
  cell.output_nr = from.output_nr;
  if (from.requires_grad && from.is_leaf())
    cell.need_meta().stands_for =
        from.meta && from.meta->stands_for ? from.meta->stands_for : RefPtr<TensorImpl>(&from);
  return made;
}

// An operand of the record as it was before the run: if the run has written to the memory of a view, the view is out
// of date only from now on.
Tensor as_before(const Tensor& operand) {
  if (!operand.defined() || !is_outdated(operand.impl())) return operand;
  Tensor made = with_place_of(operand, operand);
  TensorImpl& cell = made.impl();
  cell.base = operand.impl().base;
  if (operand.impl().meta) cell.need_meta().base_epoch = operand.impl().meta->base_epoch;
  return made;
}

// The nodes of a graph, in the order in which replay emits them: it skips removed hooks.
class Nodes {
 public:
  Nodes(const ir::Graph& graph, const std::vector<ir::Binding>& bindings)
      : graph_(graph), bindings_(bindings) {}
  size_t next() {
    while (is_removed(graph_.nodes()[next_])) ++next_;
    return next_++;
  }
  const ir::Node& operator[](size_t number) const { return graph_.nodes()[number]; }

 private:
  bool is_removed(const ir::Node& node) const {
    return node.op == &ops::hook && !bindings_[static_cast<size_t>(node.handle)].hook->is_live();
  }
  const ir::Graph& graph_;
  const std::vector<ir::Binding>& bindings_;
  size_t next_ = 0;
};

// Replays the graph of a forward with gradient mode as it was when each node was recorded. Opaque values are those of
// the run, whose pack hooks are not called again; the values that the run wrote outside are already there.
class ForwardReplay final : public PassThrough {
 public:
  /// `wanted`: values that will be requested.
  ForwardReplay(Emitter& below, const RecordedFunction& recorded, const std::vector<ir::Binding>& bindings,
                const Tensors& saved, std::span<const Number> numbers, const std::set<ir::ValueId>& wanted)
      : PassThrough("ForwardReplay", below),
        recorded_(recorded),
        numbers_(numbers),
        nodes_(recorded.graph, bindings) {
    for (ir::ValueId v : wanted) values_[v] = Tensor();
    for (const RecordedFunction::TraceableCall& call : recorded.traceable_calls)
      for (const auto* list : {&call.operands, &call.results})
        for (ir::ValueId v : *list) values_[v] = Tensor();
    for (size_t i = 0; i < bindings.size(); ++i) keep(recorded.graph.inputs()[i].value, bindings[i].tensor);
    for (size_t i = 0; i < recorded.saved.size(); ++i)
      saved_[recorded.graph.outputs()[static_cast<size_t>(recorded.saved[i].output)]] = saved[i];
  }
  void emit(const Call& call, Tensor* results) override {
    const size_t number = nodes_.next();
    link_up_to(number);
    const ir::Node& node = nodes_[number];
    const AutoGradMode mode(!recorded_.no_grad[number] && GradMode::is_enabled());
    const auto known = saved_.find(node.first_result);
    if (call.op == &ops::pack && known != saved_.end())
      results[0] = known->second;
    else if (HostCode* code = code_of(call))
      code->replay(call.operands, results);
    else
      below().emit(call, results);
    for (int i = 0; i < call.outputs; ++i) keep(node.first_result + i, results[i]);
  }
  /// After all nodes have been emitted: the wanted values.
  const std::map<ir::ValueId, Tensor>& values() {
    link_up_to(recorded_.graph.nodes().size());
    return values_;
  }

 private:
  void keep(ir::ValueId value, const Tensor& tensor) {
    if (const auto it = values_.find(value); it != values_.end()) it->second = tensor;
  }
  // Makes the records of the user functions that ran before a node.
  void link_up_to(size_t node) {
    for (; linked_ < recorded_.traceable_calls.size() && recorded_.traceable_calls[linked_].node <= node;
         ++linked_)
      link(recorded_.traceable_calls[linked_]);
  }
  void link(const RecordedFunction::TraceableCall& recorded) {
    std::vector<TensorImpl*> operands;
    for (ir::ValueId v : recorded.operands)
      operands.push_back(v == ir::kNoValue ? nullptr : values_[v].get());
    Tensors computed;
    for (ir::ValueId v : recorded.results) computed.push_back(v == ir::kNoValue ? Tensor() : values_[v]);
    FunctionCall::Attrs attrs = recorded.attrs;
    std::vector<std::byte> concrete;
    auto& of_run =
        *static_cast<FunctionCall::Attrs*>(ir::concrete_attrs(*recorded.op, &attrs, numbers_, concrete));
    of_run.results = &computed;
    Tensors linked(computed.size());
    below().emit({recorded.op, operands, &of_run, recorded.where, static_cast<int>(linked.size())},
                 linked.data());
    for (size_t i = 0; i < linked.size(); ++i) {
      if (!linked[i].defined() || !linked[i].impl().grad_fn) continue;
      TensorImpl& cell = linked[i].impl();
      if (cell.grad_fn->op == recorded.op) cell.grad_fn->need_hooks().owned = recorded.context;
      if (recorded.is_differentiable[i]) continue;
      cell.grad_fn.reset();
      cell.requires_grad = false;
    }
  }

  const RecordedFunction& recorded_;
  const std::span<const Number> numbers_;
  Nodes nodes_;
  std::map<ir::ValueId, Tensor> saved_, values_;
  size_t linked_ = 0;  // of the traceable calls
};

// Replays the graph of a backward. The result of an unpack hook continues the graph at the packed value.
class BackwardReplay final : public PassThrough {
 public:
  BackwardReplay(Emitter& below, const RecordedFunction& recorded, const std::vector<ir::Binding>& bindings,
                 const std::map<ir::ValueId, Tensor>& packed)
      : PassThrough("BackwardReplay", below), nodes_(recorded.graph, bindings) {
    for (const auto& [unpacked, value] : recorded.reads.straight) places_[unpacked] = packed.at(value);
  }
  void emit(const Call& call, Tensor* results) override {
    const ir::Node& node = nodes_[nodes_.next()];
    below().emit(call, results);
    for (int i = 0; i < call.outputs; ++i)
      if (const auto it = places_.find(node.first_result + i); it != places_.end() && it->second.defined())
        results[i] = with_place_of(results[i], it->second);
  }

 private:
  Nodes nodes_;
  std::map<ir::ValueId, Tensor> places_;
};

}  // namespace

void SizedFunction::link(Tensors& results, const std::vector<ir::Binding>& bindings,
                         std::shared_ptr<SavedRun> saved, SourceLocation where) {
  Tensors held;
  std::vector<TensorImpl*> operands;
  for (int32_t input : capture_->tape()->inputs()) {
    held.push_back(as_before(bindings[static_cast<size_t>(input)].tensor));
    operands.push_back(held.back().get());
  }
  for (size_t leaf : capture_->tape()->made_leaves()) {
    results[leaf].requires_grad_();
    operands.push_back(results[leaf].get());
  }
  const Tensors computed = results;
  CompiledAttrs attrs{&computed};
  eager_emitter().emit({&compiled, operands, &attrs, where, static_cast<int>(results.size())},
                       results.data());
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results[i].defined() || !results[i].impl().grad_fn) continue;
    TensorImpl& cell = results[i].impl();
    cell.grad_fn->need_hooks().saved = saved;
    if (results_[i].is_differentiable) continue;
    cell.grad_fn.reset();
    cell.requires_grad = false;
  }
}

// ---- its backward -------------------------------------------------------------------------------------------------

// `bindings_of_run`: of the forward; `saved`: its values.
std::vector<ir::Binding> SizedFunction::bind_backward(const std::vector<RecordedFunction::Input>& inputs,
                                                      std::span<TensorImpl* const> cotangents,
                                                      const std::vector<ir::Binding>& bindings_of_run,
                                                      const Tensors& saved) const {
  std::vector<ir::Binding> bindings;
  for (const RecordedFunction::Input& input : inputs) {
    ir::Binding b;
    if (input.argument >= 0)  // recorded as row-major
      b.tensor = contiguous(Tensor(RefPtr<TensorImpl>(cotangents[static_cast<size_t>(input.argument)])));
    else
      b.tensor = input.saved >= 0           ? saved[static_cast<size_t>(input.saved)]
                 : input.forward_input >= 0 ? bindings_of_run[static_cast<size_t>(input.forward_input)].tensor
                 : input.grad_of            ? grad_memory(*input.grad_of)
                                            : Tensor(RefPtr<TensorImpl>(input.captured));
    b.hook = input.hook;
    b.code = input.code;
    bindings.push_back(std::move(b));
  }
  return bindings;
}

// The values that the backward needs are recomputed, op by op: gradients may be differentiated again.
Tensors SizedFunction::replay_backward(const FunctionBackward& backward,
                                       std::span<TensorImpl* const> cotangents, const SavedRun& saved,
                                       const Tensors& values, std::span<const Number> numbers,
                                       SourceLocation where) const {
  const bool again = is_differentiated(cotangents);
  if (again && std::ranges::any_of(capture_->tape()->made_leaves(),
                                   [&](size_t leaf) { return leaf < results_.given(); }))
    fail(Category::unsupported, "compiled",
         "gradients of gradients of a recorded function that returns a leaf that it makes. Hint: make it "
         "outside",
         where);
  if (!backward.needs_forward()) {
    const std::vector<ir::Binding> bindings = bind_backward(backward.recorded.inputs, cotangents, {}, {});
    return ir::replay(backward.recorded.graph, Emitter::current(), bindings, numbers);
  }
  if (again && recorded_.has_two_histories)
    fail(Category::unsupported, "compiled",
         "gradients of gradients of a recorded function that writes to memory which it uses with and without "
         "a gradient. Hint: clone() what is detached, or is written to under no_grad",
         where);
  const ir::Graph& graph = recorded_.graph;
  std::set<ir::ValueId> wanted;
  for (const auto& [unpacked, value] : backward.recorded.reads.straight) wanted.insert(value);
  ForwardReplay forward(Emitter::current(), recorded_, saved.bindings, values, saved.numbers, wanted);
  Tensors outputs;
  {
    const detail::NoDefaultHooks saves_nothing_new;
    outputs = ir::replay(graph, forward, saved.bindings, saved.numbers);
    forward.values();
  }
  Tensors computed;
  for (const RecordedFunction::Saved& s : recorded_.saved)
    computed.push_back(outputs[static_cast<size_t>(s.output)]);
  const std::vector<ir::Binding> bindings = bind_backward(backward.recorded.inputs, cotangents, {}, computed);
  BackwardReplay emitter(Emitter::current(), backward.recorded, bindings, forward.values());
  return ir::replay(backward.recorded.graph, emitter, bindings, numbers);
}

// Forward mode needs single operations, not plans.
bool is_differentiated(std::span<TensorImpl* const> cotangents) {
  const auto has_tangent = [](const TensorImpl* c) { return c && c->meta && !c->meta->tangents.empty(); };
  return GradMode::is_enabled() ||
         (&emitter_below_profiles() != &eager_emitter() && std::ranges::any_of(cotangents, has_tangent));
}

// The gradients that the backward computes from a run's values. `left`: of each input of the backward, a value that has
// not been released when it throws.
Tensors SizedFunction::gradients_of(const FunctionBackward& backward, std::span<TensorImpl* const> cotangents,
                                    const SavedRun& saved, SavedRun::Taken taken, Tensors& left,
                                    const Record& record) const {
  Tensors& values = taken.values;
  const SourceLocation where = record.where();
  std::vector<Number> numbers = backward.numbers;
  if (recorded_.graph.symbols.size())
    std::copy_n(saved.numbers.begin(), backward.recorded.reads.symbols, numbers.begin());
  NumbersOfRun read(backward.recorded, backward.planned, std::move(numbers), /*first=*/false);
  for (const RecordedFunction::Input& input : backward.inputs)
    left.push_back(input.saved >= 0 ? values[static_cast<size_t>(input.saved)] : Tensor());
  if (!taken.can_run || is_differentiated(cotangents)) {
    if (backward.needs_forward()) saved.check_inputs(where);
    read.read();
    read.use_all();
    return replay_backward(backward, cotangents, saved, values, read.values(), where);
  }
  read.read();
  const ProfiledRun profiled(saved.function, backward.planned, {}, read.values());
  std::vector<ir::Binding> bindings = bind_backward(backward.inputs, cotangents, saved.bindings, values);
  values.clear(), left.clear();  // only the run holds them now
  const EarlyGradients early(backward, record, bindings);
  return run_plan(*backward.plan, std::move(bindings), read.values(), read.nodes, nullptr, &left, &early);
}

void SizedFunction::run_backward(Record& record, std::span<TensorImpl* const> operands, Tensor* results) {
  const auto saved = std::static_pointer_cast<SavedRun>(record.hooks->saved);
  SizedFunction& function = *saved->function;
  const FunctionBackward& backward = function.backwards_->find(record, operands);
  SavedRun::Taken taken = saved->take(backward, record, operands);
  Tensors gradients = std::move(taken.gradients), left;
  try {
    if (gradients.empty())
      gradients = function.gradients_of(backward, operands, *saved, std::move(taken), left, record);
  } catch (...) {
    saved->give_back(backward, left);
    throw;
  }
  for (size_t i = 0; i < gradients.size(); ++i)
    if (record.edge(static_cast<int>(i))) results[i] = std::move(gradients[i]);
}

}  // namespace retrograd
