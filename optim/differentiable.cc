// See optim/differentiable.h.
// clang-format off: before the rules
#include "optim/tensor_lane.h"
// clang-format on
#include "optim/differentiable.h"

namespace retrograd::inline v0::optim::detail {
namespace {

template <class Rule>
std::vector<Tensor> step(const StepInputs& inputs, std::span<const Tensor> operands) {
  using Formula = typename Rule::Formula;
  using V = tensor_math::TensorLane;
  const typename Formula::Factors factors(options_of<Rule>(inputs),
                                          ops::Progress{inputs.numbers[ops::StepNames<Rule>::step],
                                                        inputs.numbers + ops::StepNames<Rule>::step + 1});
  V x[Rule::inputs], y[Rule::inputs - 1];
  ops::Present has{0};
  for (size_t k = 0; k < operands.size(); ++k) {
    x[k] = operands[k];
    has.bits |= static_cast<uint32_t>(operands[k].defined()) << k;
  }
  Formula::template step<V>(factors, has, x, y);
  std::vector<Tensor> results;
  for (size_t k = 0; k + 1 < operands.size(); ++k)
    results.push_back(has[static_cast<int>(k)] ? y[k].tensor : Tensor());
  return results;
}

template <class... Rule>
DifferentiableStep find(const OpInfo* op, ops::RuleList<Rule...>) {
  DifferentiableStep found = nullptr;
  ((op == &ops::info<ops::StepOf<Rule>> ? void(found = step<Rule>) : void()), ...);
  return found;
}

}  // namespace

DifferentiableStep differentiable_step(const OpInfo* op) { return find(op, ops::OptimizerRules()); }

}  // namespace retrograd::optim::detail
