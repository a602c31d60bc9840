// TrainingStep: a training step of an example, run as --mode says. Losses and parameters are the same in all modes, bit
// for bit.
//
//   eager     clear the gradients, forward, loss.backward(), update
//   traced    the same, the backward through compile_backward()
//   compiled  the same, the forward through compile(): it and its backward are plans
//   step      all four through compile_step(): one plan
//
// The forward runs with the pair of saved-tensor hooks that --saved selects. The update is a region with that name in a
// profile (tracer/observe/profile.h), except in a recorded step, where it is part of the plan.
// Start reading at run().
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "retrograd/retrograd.h"

namespace examples {

class TrainingStep {
 public:
  using Loss =
      std::function<retrograd::Tensor(const retrograd::Tensor& input, const retrograd::Tensor& target)>;
  struct Parts {
    Loss loss;                     // of a batch
    std::function<void()> update;  // the optimizer's step, with its schedule and the like
  };

  /// `model` and what `parts` refer to must outlive this; `hooks` may be null. `budget`: of mode step.
  TrainingStep(std::string_view mode, retrograd::nn::Module& model, Parts parts,
               retrograd::RefPtr<retrograd::SavedTensorHooks> hooks, retrograd::MemoryBudget budget = {});
  TrainingStep(const TrainingStep&) = delete;

  /// The loss of the batch, before the update.
  retrograd::Tensor operator()(const retrograd::Tensor& input, const retrograd::Tensor& target);

  /// All zero without a budget.
  retrograd::MemoryReport memory() const { return compiled_.memory(); }
  /// -1 if the mode does not have it.
  struct Stats {
    int64_t captures = -1, hits = -1, unpacks = -1;
  };
  Stats stats() const;
  /// The graphs that the last step ran, in their order.
  std::vector<std::shared_ptr<const retrograd::ir::Graph>> graphs() const;

 private:
  enum class Mode : uint8_t { eager, traced, compiled, step };
  static Mode mode_of(std::string_view name);
  retrograd::Tensor run(const retrograd::Tensor& input, const retrograd::Tensor& target);
  retrograd::Tensor forward(const retrograd::Tensor& input, const retrograd::Tensor& target);
  void backward(const retrograd::Tensor& loss);

  const Mode mode_;
  retrograd::nn::Module& model_;
  const Parts parts_;
  const retrograd::RefPtr<retrograd::SavedTensorHooks> hooks_;
  retrograd::CompiledBackward traced_ = retrograd::compile_backward();
  retrograd::Compiled<Loss> compiled_;  // the loss, or all of the step
};

}  // namespace examples
