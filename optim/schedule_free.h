// AdamWScheduleFree: AdamW without a schedule of learning rates (ops/optimizers/schedule_free.h). While it trains, the model
// has the parameters at which gradients are taken; eval() replaces them by their average, which is what has been learned,
// train() goes back. Both keep the optimizer's state.
#pragma once

#include "ops/optimizers/schedule_free.h"
#include "optim/optimizer.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::optim {

class AdamWScheduleFree final : public OptimizerOf<ops::AdamWScheduleFree> {
 public:
  using OptimizerOf::OptimizerOf;
  using OptimizerOf::step;
  /// Error(bad_argument) after eval().
  void step(SourceLocation where = SourceLocation::current()) override;
  void eval();
  void train();
  bool is_training() const { return *is_training_; }

 private:
  void mix(double (*share)(double beta1));

  std::shared_ptr<bool> is_training_ = std::make_shared<bool>(true);
};

}  // namespace retrograd::optim
#pragma GCC visibility pop
