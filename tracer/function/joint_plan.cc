// The plans of a function with a backward and a memory budget.
//
//   1. The forward, and the backward for gradients of all results, go through the passes, each by itself. What the
//      backward reads of the forward is what rules save.
//   2. They become one graph, the *joint graph*: what the backward reads is what the forward computes, cotangents are
//      inputs. Its outputs are results, written values and gradients.
//   3. It is fitted to the budget (tracer/function/budgeted_plan.h). No task moves across the boundary; the backward
//      computes again whatever pays.
//   4. It is cut there (ir/splice.h). What nodes of the forward make and the backward still reads is saved: by number,
//      behind the saved values of the recording, of which only those remain that host code has made. Inputs of the
//      forward are those of its run.
//   5. The peak of the two plans is the higher one of a forward's run, and of what it leaves with the cotangent and the
//      backward's run on top. The forecast of the latter has stand-ins for the saved values: memory of which only the
//      size is known.
//
// Only the backward for gradients of all results has a plan. All others, and those that find a saved value gone or
// changed, replay the recorded graphs from the inputs of the run (linked_record.cc).
#include <algorithm>
#include <set>
#include <unordered_map>

#include "tracer/function/budgeted_plan.h"
#include "tracer/function/sized_function.h"

namespace retrograd::inline v0 {
namespace {

struct JointGraph {
  ir::Graph graph;
  ir::Boundary boundary;
};

// `forward`, `backward`: graphs of these recordings.
JointGraph join(const RecordedFunction& of_forward, const ir::Graph& forward,
                const RecordedFunction& of_backward, const ir::Graph& backward) {
  JointGraph joint{forward.copy(),
                   {forward.inputs().size(), forward.nodes().size(), forward.outputs().size()}};
  ir::Graph& graph = joint.graph;
  graph.symbols = backward.symbols;
  std::vector<ir::ValueId> outputs = graph.outputs(), inputs;
  for (const RecordedFunction::Input& input : of_backward.inputs)
    inputs.push_back(
        input.saved < 0
            ? ir::kNoValue
            : outputs[static_cast<size_t>(of_forward.saved[static_cast<size_t>(input.saved)].output)]);
  const std::vector<ir::ValueId> gradients = ir::splice(graph, backward, inputs);
  std::set<ir::ValueId> of_host;
  for (const ir::Node& node : forward.nodes())
    for (int r = 0; r < node.results && !node.op->is(Trait::pure); ++r) of_host.insert(node.first_result + r);
  for (const RecordedFunction::Saved& s : of_forward.saved)
    if (ir::ValueId& v = outputs[static_cast<size_t>(s.output)]; !of_host.contains(v)) v = ir::kNoValue;
  outputs.insert(outputs.end(), gradients.begin(), gradients.end());
  graph.set_outputs(std::move(outputs));
  return joint;
}

// A backward of a loss gets its cotangent from backward(), which makes it; others come from the caller.
int64_t bytes_of_cotangent(const RecordedFunction& backward) {
  int64_t results = 0, bytes = 0;
  for (size_t i = 0; i < backward.inputs.size(); ++i) {
    if (backward.inputs[i].argument < 0) continue;
    const TensorType& type = backward.graph.type(backward.graph.inputs()[i]);
    ++results;
    bytes = type.shape.numel() == 1 ? bytes_of(type) : 0;
  }
  return results == 1 ? bytes : 0;
}

// A run that can be replayed copies memory that it writes to (SizedFunction::bindings_to_keep).
int64_t bytes_of_written(const RecordedFunction& forward, const std::vector<ir::Binding>& bindings) {
  std::set<const Storage*> written;
  for (const RecordedFunction::Write& w : forward.writes)
    written.insert(bindings[static_cast<size_t>(w.input)].tensor.impl().storage().get());
  int64_t bytes = 0;
  for (const Storage* memory : written) bytes += memory->nbytes();
  return bytes;
}

// The graphs of a joint graph that has been fitted.
struct Halves {
  ir::Graph forward, backward;
  std::vector<RecordedFunction::Input> inputs;  // of the backward
  std::vector<RecordedFunction::Saved> saved;   // by number
};

Halves halves_of(const ir::Graph& joint, const ir::Boundary& boundary, const RecordedFunction& of_forward,
                 const RecordedFunction& of_backward) {
  ir::Cut cut = ir::cut(joint, boundary);
  Halves made{std::move(cut.first), std::move(cut.second), {}, of_forward.saved};
  made.forward.name = of_forward.graph.name;
  made.forward.symbols = of_forward.graph.symbols;
  made.backward.name = of_backward.graph.name;
  made.backward.symbols = joint.symbols;
  for (const RecordedFunction::Input& input : of_backward.inputs)
    if (input.saved < 0) made.inputs.push_back(input);
  std::vector<ir::ValueId> outputs = made.forward.outputs();
  std::unordered_map<ir::ValueId, RecordedFunction::Input> known;
  for (size_t i = 0; i < made.forward.inputs().size(); ++i)
    known[made.forward.inputs()[i].value] = {.forward_input = static_cast<int>(i)};
  for (size_t i = 0; i < made.saved.size(); ++i)
    if (const ir::ValueId v = outputs[static_cast<size_t>(made.saved[i].output)]; v == ir::kNoValue)
      made.saved[i] = {-1, {}};
    else
      known[v] = {.saved = static_cast<int>(i)};
  for (ir::ValueId v : cut.passed) {
    if (known.try_emplace(v, RecordedFunction::Input{.saved = static_cast<int>(made.saved.size())}).second) {
      made.saved.push_back({static_cast<int32_t>(outputs.size()), {}});
      outputs.push_back(v);
    }
    made.inputs.push_back(known[v]);
  }
  made.forward.set_outputs(std::move(outputs));
  return made;
}

// In place of a value that a run will make.
Tensor stand_in(const TensorType& type) {
  RefPtr<TensorImpl> cell = TensorImpl::make();
  cell->set_type(type.dtype, type.device, type.shape);
  contiguous_strides(cell->shape(), cell->mutable_strides());
  cell->set_storage(Storage::own(nullptr, bytes_of(type), nullptr, nullptr));
  return Tensor(std::move(cell));
}

// In place of the saved values of a run. `held`: those that the run does not release: they belong to results or come
// from host code, or are cotangents.
Tensors saved_stand_ins(const Halves& halves, size_t first_outputs, Tensors& held) {
  const ir::Graph& graph = halves.forward;
  ir::MemoryClasses classes(graph);
  std::set<ir::ValueId> shown;
  for (ir::ValueId v : std::span(graph.outputs()).first(first_outputs))
    if (v != ir::kNoValue) shown.insert(classes.representative(v));
  Tensors made;
  for (const RecordedFunction::Saved& s : halves.saved) {
    made.emplace_back();
    if (s.output < 0) continue;
    const ir::ValueId v = graph.outputs()[static_cast<size_t>(s.output)];
    made.back() = stand_in(graph.type(v));
    if (shown.contains(classes.representative(v))) held.push_back(made.back());
  }
  return made;
}

}  // namespace

void SizedFunction::plan_with_backward_within(const MemoryBudget& budget, const Tensors& arguments) {
  const RecordedFunction& backward = backwards_->first().recorded;
  const std::vector<ir::OutsideWrite> writes = outside_writes(recorded_);
  const int64_t cotangent = bytes_of_cotangent(backward);
  BudgetRequest request{"compile", "the function and its backward", capture_->where()};
  request.eager_bytes =
      cotangent + eager_peak(join(recorded_, recorded_.graph, backward, backward.graph).graph, writes);
  const int64_t written = bytes_of_written(recorded_, bind(arguments));
  request.held = cotangent + written;
  const JointGraph joint = join(recorded_, optimised_forward(), backward,
                                optimised(backward.graph, {}, backwards_->choices().given));
  request.writes = writes;
  request.boundary = joint.boundary;
  const auto plan = [&](const ir::Graph& fitted, const std::optional<ir::Boundary>& boundary, int64_t) {
    return written + take_fitted(fitted, *boundary, arguments);
  };
  memory_ = std::make_unique<const MemoryReport>(plan_within_budget(budget, joint.graph, request, plan));
}

// Cuts the joint graph and makes both plans. Returns what they add.
int64_t SizedFunction::take_fitted(const ir::Graph& joint, const ir::Boundary& boundary,
                                   const Tensors& arguments) {
  const FunctionBackward& backward = backwards_->first();
  Halves halves = halves_of(joint, boundary, recorded_, backward.recorded);
  Tensors held;
  std::vector<TensorImpl*> given(results_.size());
  for (size_t i = 0; i < halves.inputs.size(); ++i)
    if (const int result = halves.inputs[i].argument; result >= 0) {
      held.push_back(stand_in(halves.backward.type(halves.backward.inputs()[i])));
      given[static_cast<size_t>(result)] = held.back().get();
    }
  const std::vector<ir::Binding> bindings = bind(arguments);
  std::vector<ir::Binding> of_backward =
      bind_backward(halves.inputs, given, bindings, saved_stand_ins(halves, boundary.outputs, held));
  plan_.reset();
  planned_ = std::move(halves.forward);
  backwards_->fit(std::move(halves.backward), std::move(halves.inputs), std::move(halves.saved));
  ir::GroupMemories groups(planned_, executor_for(planned_), numbers_);
  make_plan(arguments, {}, groups);
  const MemoryTimeline first = timeline_of(*plan_, bindings, numbers_);
  const MemoryTimeline second = timeline_of(*backward.plan, std::move(of_backward), backward.numbers);
  const int64_t backward_most =
      first.at_end + bytes_of_cotangent(backward.recorded) + second.most - second.at_begin;
  return std::max(first.most, backward_most) - first.at_begin;
}

}  // namespace retrograd
