// See optim/updates.h.
#include "optim/updates.h"

#include <fmt/format.h>

#include "ops/comparison.h"
#include "ops/copy.h"
#include "ops/random_ops.h"
#include "ops/shape_ops.h"
#include "ops/ternary.h"
#include "optim/differentiable.h"

namespace retrograd::inline v0::optim::detail {
namespace {

// The operands of an elementwise rule.
std::vector<Tensor> operands_of(const RuleInfo& rule, const ParamState& state, const Tensor& param,
                                uint32_t present) {
  const size_t states = rule.states.size();
  std::vector<Tensor> operands(states + 2);
  operands[0] = param;
  for (size_t i = 0; i < states; ++i)
    if (!((rule.op->optional & ~present) >> (i + 1) & 1)) operands[i + 1] = state.states[i];
  operands[states + 1] = contiguous(state.param.grad());
  return operands;
}

}  // namespace

void give(const RuleInfo& rule, const StepInputs& inputs, const ParamState& state, std::span<Scalar> out) {
  double factors[LiveNumbers::kMost];
  if (!rule.op) rule.factors_of(inputs, state.master.defined() ? state.master : state.param, factors);
  std::copy_n(rule.op ? inputs.numbers : factors, out.size(), out.begin());
}

Tensor step_differentiably(const RuleInfo& rule, ParamState& state, const StepInputs& inputs,
                           uint32_t present, SourceLocation where) {
  refuse_recording(rule.name, "the numbers of a differentiable step would be constants", where);
  EnableGradGuard enable_grad;
  Tensor next = state.param;
  if (rule.op) {
    const std::vector<Tensor> operands = operands_of(rule, state, state.param, present);
    const std::vector<Tensor> results = differentiable_step(rule.op)(inputs, operands);
    next = results[0];
    for (size_t i = 0; i + 1 < results.size(); ++i)
      if (results[i + 1].defined()) state.states[i] = results[i + 1];
  } else {
    std::vector<std::pair<Tensor, Tensor>> changes;
    ParamUpdate update{state.param, state.param.grad(), state.states, {}, inputs.structure, 0, {}, &changes,
                       {}};
    give(rule, inputs, state, {update.factors.data(), rule.factors});
    rule.update({&update, 1}, where);
    for (const auto& [target, value] : changes) {
      if (target.get() == state.param.get()) next = value;
      for (Tensor& s : state.states)
        if (s.get() == target.get()) s = value;
    }
  }
  state.advance(rule, inputs);
  return contiguous(next);
}

Updates::Updates(const RuleInfo& rule, const Tensor& found_inf, SourceLocation where)
    : rule_(rule), found_inf_(found_inf), where_(where) {
  if (rule.op) elementwise_.emplace(*rule.op, where, found_inf);
}

void Updates::add(size_t group, ParamState& state, const StepInputs& inputs, uint32_t present,
                  const UpdateMode& mode, std::span<const Scalar> given) {
  const Tensor wide = wide_param(state, mode), &param = wide.defined() ? wide : state.param;
  steps_.push_back({&state, inputs, wide});
  if (!rule_.op) {
    const Tensor grad = to(contiguous(state.param.grad()), param.dtype());
    ParamUpdate update{param, grad, state.states, {}, nullptr, group, found_inf_, nullptr, {}};
    std::ranges::copy(given, update.factors.begin());
    composed_.push_back(std::move(update));
    return;
  }
  bool flags[kMostStructure];
  std::copy_n(inputs.structure, rule_.structure, flags);
  elementwise_->add(operands_of(rule_, state, param, present), given, {flags, rule_.structure}, state.master);
}

void Updates::run() {
  if (rule_.op)
    elementwise_->run([&](size_t i) { done(i); });
  else
    run_composed();
  if (recorded_function())
    for (const Step& s : steps_) round(s);
}

// In the step of an elementwise rule the op itself follows what has been written to the parameter.
Tensor Updates::wide_param(const ParamState& state, const UpdateMode& mode) const {
  if (!mode.is_wide(state.param) || (rule_.op && mode.master_weights)) return {};
  if (mode.stochastic_rounding) return to(state.param, kFloat32);
  const Tensor &param = state.param, &master = state.master;
  master.copy_(where(eq(param, to(master, param.dtype())), master, to(param, kFloat32)));
  return master;
}

void Updates::round(const Step& s) const {
  const Tensor& param = s.state->param;
  if (!s.wide.defined()) return;
  if (s.wide.get() == s.state->master.get())
    param.copy_(s.wide);
  else
    fill_stochastic_round(param, s.wide, where_);
}

void Updates::done(size_t i) {
  round(steps_[i]);
  steps_[i].state->advance(rule_, steps_[i].inputs);
}

void Updates::run_composed() {
  size_t made = 0;
  for (size_t i = 0; i < composed_.size(); ++i) {
    composed_[i].structure = steps_[i].inputs.structure;
    if (!recorded_function()) composed_[i].count = [&, i] { done(i), ++made; };
  }
  try {
    rule_.update(composed_, where_);
  } catch (Exception& e) {
    if (made > 0)
      e.add_context(fmt::format("when {} of {} parameters had been updated", made, composed_.size()));
    throw;
  }
}

void UpdatesOneByOne::run(size_t group, ParamState& state, const StepInputs& inputs, uint32_t present,
                          const UpdateMode& mode, std::span<const Scalar> given) {
  try {
    Updates one(rule_, found_inf_, where_);
    one.add(group, state, inputs, present, mode, given);
    one.run();
  } catch (Exception& e) {
    if (made_ > 0) e.add_context(fmt::format("when {} parameters had been updated", made_));
    throw;
  }
  ++made_;
}

}  // namespace retrograd::optim::detail
