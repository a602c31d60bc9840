// See examples/common/training_step.h.
#include "examples/common/training_step.h"

#include <optional>

namespace examples {

namespace rg = retrograd;
using rg::Tensor;

TrainingStep::TrainingStep(std::string_view mode, rg::nn::Module& model, Parts parts,
                           rg::RefPtr<rg::SavedTensorHooks> hooks, rg::MemoryBudget budget)
    : mode_(mode_of(mode)),
      model_(model),
      parts_(std::move(parts)),
      hooks_(std::move(hooks)),
      compiled_(mode_ == Mode::step
                    ? rg::compile_step(Loss([this](const Tensor& input, const Tensor& target) {
                                         return run(input, target);
                                       }),
                                       {.budget = budget})
                    : rg::compile(parts_.loss)) {}

TrainingStep::Mode TrainingStep::mode_of(std::string_view name) {
  return name == "traced"     ? Mode::traced
         : name == "compiled" ? Mode::compiled
         : name == "step"     ? Mode::step
                              : Mode::eager;
}

Tensor TrainingStep::operator()(const Tensor& input, const Tensor& target) {
  if (mode_ != Mode::step) return run(input, target);
  // A step is recorded with the hooks that are open when it is called.
  std::optional<rg::SavedTensorHooksGuard> guard;
  if (hooks_) guard.emplace(hooks_);
  return compiled_(input, target);
}

Tensor TrainingStep::run(const Tensor& input, const Tensor& target) {
  const Tensor loss = forward(input, target);
  backward(loss);
  const rg::ProfileRegion region("update");
  parts_.update();
  model_.zero_grad();  // here, so that no gradient outlives a recorded step
  return loss;
}

Tensor TrainingStep::forward(const Tensor& input, const Tensor& target) {
  std::optional<rg::SavedTensorHooksGuard> guard;
  if (hooks_ && mode_ != Mode::step) guard.emplace(hooks_);
  return mode_ == Mode::compiled ? compiled_(input, target) : parts_.loss(input, target);
}

void TrainingStep::backward(const Tensor& loss) {
  if (mode_ == Mode::traced)
    traced_(loss);
  else
    loss.backward();
}

TrainingStep::Stats TrainingStep::stats() const {
  switch (mode_) {
    case Mode::eager: return {};
    case Mode::traced: return {traced_.stats().captures, traced_.stats().hits, traced_.stats().unpacks};
    case Mode::compiled:
    case Mode::step: break;
  }
  return {compiled_.stats().captures, compiled_.stats().hits};
}

std::vector<std::shared_ptr<const rg::ir::Graph>> TrainingStep::graphs() const {
  std::vector<std::shared_ptr<const rg::ir::Graph>> all;
  if (mode_ == Mode::traced) all = {traced_.graph()};
  if (mode_ == Mode::compiled) all = {compiled_.graph(), compiled_.backward_graph()};
  if (mode_ == Mode::step) all = {compiled_.graph()};
  std::erase(all, nullptr);
  return all;
}

}  // namespace examples
