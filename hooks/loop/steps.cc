// See hooks/loop/steps.h.
#include "hooks/loop/steps.h"

#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>

#include "engine/autograd.h"
#include "engine/tape.h"
#include "ops/shape_ops.h"

namespace retrograd::inline v0 {
namespace {

constexpr const char* kName = "checkpoint_loop";

}  // namespace

StepState::StepState(int64_t step, const Tensors& state) : step(step) {
  for (const Tensor& t : state) {
    this->state.push_back(t.detach());
    versions.push_back(t.version());
  }
}

void LoopSteps::check_unchanged(const StepState& at) const {
  for (size_t i = 0; i < at.state.size(); ++i)
    if (at.state[i].version() != at.versions[i])
      fail(Category::version_mismatch, kName,
           fmt::format(
               "tensor {} of the state before step {}, {}, was written to in place. Hint: the body must "
               "return new tensors",
               i, at.step, describe(at.state[i])),
           code_->where);
}

void LoopSteps::check_parameters(const StepState& saved) const {
  for (size_t i = 0; i < saved.state.size(); ++i)
    if (const Tensor& t = saved.state[i]; t.version() != saved.versions[i]) {
      const SourceLocation written_at = t.impl().storage()->written_at();
      fail(Category::version_mismatch, kName,
           fmt::format(
               "parameter {}, {}, which the backward reads again, was modified in place{}. Hint: run the "
               "backward first",
               i, describe(t), written_at ? " at " + to_string(written_at) : ""),
           code_->where);
    }
}

void LoopSteps::check_results(const Tensors& state, const Tensors& results) const {
  if (results.size() != state.size())
    fail(Category::bad_argument, kName,
         fmt::format("the body returned {} tensors for a state of {}", results.size(), state.size()),
         code_->where);
  for (size_t i = 0; i < state.size(); ++i)
    if (!results[i].defined() || !(results[i].impl().type() == state[i].impl().type()))
      fail(Category::bad_argument, kName,
           fmt::format("the body returned {} for tensor {} of the state, which is {}", describe(results[i]),
                       i, describe(state[i])),
           code_->where);
}

// The pair of saved-tensor hooks around the loop has no part in its steps: not in the forward either, as it is closed
// when they are executed again.
Tensors LoopSteps::call_body(const Tensors& state, int64_t step) const {
  const detail::NoDefaultHooks no_pair;
  const detail::AutocastAs as_around_the_loop(code_->autocast);
  Tensors results;
  try {
    results = code_->body(state, step);
  } catch (Exception& e) {
    e.add_context(
        fmt::format("in step {} of the checkpoint_loop called at {}", step, to_string(code_->where)));
    throw;
  }
  ++loop_counters.steps;
  check_results(state, results);
  return results;
}

Tensors LoopSteps::run_all(Tensors state) const {
  for (int64_t step = 0; code_->goes_on(state, step); ++step) state = call_body(state, step);
  return state;
}

// The first step tells what the body reads: no result of it may require a gradient.
Tensors LoopSteps::first_of_constant(const StepState& at) const {
  const AutoGradMode grad(true);
  const uint64_t first_record = begin_sequence();
  StepTape tape{at.state, call_body(at.state, at.step)};
  check_leaves(tape, first_record);
  return std::move(tape.results);
}

Tensors LoopSteps::run_constant(const Tensors& state) const {
  const NoGradGuard no_grad;
  StepState at(0, state);
  while (code_->goes_on(at.state, at.step))
    at = StepState(at.step + 1, at.step == 0 ? first_of_constant(at) : execute(at));
  return at.state;
}

Tensors LoopSteps::execute(const StepState& at) const {
  const NoGradGuard no_grad;
  check_unchanged(at);
  Tensors results = call_body(at.state, at.step);
  check_unchanged(at);
  return results;
}

StepTape LoopSteps::record(const StepState& at) const {
  const AutoGradMode grad(true);
  check_unchanged(at);
  StepTape tape;
  for (const Tensor& t : at.state) {
    const Tensor leaf = t.detach();
    tape.leaves.push_back(t.is_floating_point() ? leaf.requires_grad_() : leaf);
  }
  const uint64_t first_record = begin_sequence();
  tape.results = call_body(tape.leaves, at.step);
  check_unchanged(at);
  check_leaves(tape, first_record);
  return tape;
}

// The edges that leave the step's records: to leaves and to older records.
void LoopSteps::check_leaves(const StepTape& tape, uint64_t first_record) const {
  std::unordered_set<uintptr_t> listed;
  for (const Tensors* tensors : {&tape.leaves, &code_->options.parameters})
    for (const Tensor& t : *tensors)
      if (t.requires_grad()) listed.insert(gradient_edge(t.impl()).key());
  std::unordered_set<const Record*> seen;
  std::vector<Edge> left;
  for (const Tensor& result : tape.results)
    if (result.requires_grad()) left.push_back(gradient_edge(result.impl()));
  while (!left.empty()) {
    const Edge edge = std::move(left.back());
    left.pop_back();
    if (!edge || listed.contains(edge.key())) continue;
    Record* const record = edge.record();
    if (record && record->seq >= first_record) {
      if (!seen.insert(record).second) continue;
      for (int i = 0; i < record->operands; ++i) left.push_back(record->edge(i));
      continue;
    }
    const std::string what =
        record ? fmt::format("a result of {} made at {}", record->op->name, to_string(record->where()))
               : fmt::format("the leaf {}", describe(Tensor(RefPtr<TensorImpl>(edge.leaf()))));
    fail(Category::bad_argument, kName,
         "the body reads " + what +
             ", which requires a gradient and is neither part of the state nor among options.parameters. "
             "Hint: list it there, or detach it",
         code_->where);
  }
}

// Undefined where nothing is reached. No input may be given twice.
Tensors LoopSteps::gradients(const Tensors& results, const Tensors& grads, const Tensors& inputs,
                             bool create_graph) const {
  Tensors roots, cotangents, wanted;
  for (size_t i = 0; i < grads.size(); ++i)
    if (grads[i].defined() && results[i].requires_grad()) {
      roots.push_back(results[i]);
      cotangents.push_back(grads[i]);
    }
  std::ranges::copy_if(inputs, std::back_inserter(wanted), [](const Tensor& t) { return t.requires_grad(); });
  Tensors all(inputs.size());
  if (roots.empty() || wanted.empty()) return all;
  Tensors found = autograd::detail::partial_grad(roots, wanted, cotangents, create_graph, code_->where);
  size_t next = 0;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].requires_grad()) all[i] = std::move(found[next++]);
  return all;
}

Tensors LoopSteps::reverse(const StepTape& tape, const Tensors& grads,
                           const std::vector<size_t>& parameters) const {
  Tensors inputs = tape.leaves;
  for (const size_t i : parameters) inputs.push_back(code_->options.parameters[i]);
  Tensors found = gradients(tape.results, grads, inputs, false);
  ++loop_counters.reversed;
  return found;
}

// The loop begins with views of the state: its tensors may depend on one another, or be parameters.
Tensors LoopSteps::reverse_all(const Tensors& initial, int64_t steps, const Tensors& grads,
                               const std::function<void(int64_t)>& before) const {
  const AutoGradMode grad(true);
  Tensors inputs;
  for (const Tensor& t : initial) inputs.push_back(t.requires_grad() ? view(t, t.sym_sizes()) : t);
  Tensors state = inputs;
  for (int64_t step = 0; step < steps; ++step) {
    before(step);
    state = call_body(state, step);
  }
  inputs.insert(inputs.end(), code_->options.parameters.begin(), code_->options.parameters.end());
  return gradients(state, grads, inputs, true);
}

}  // namespace retrograd
