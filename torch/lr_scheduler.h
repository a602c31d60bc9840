// Learning-rate schedulers of torch::optim.
//
//   LRScheduler                 libtorch's base: a user's schedule overrides get_lrs()
//   StepLR                      libtorch's
//   ReduceLROnPlateauScheduler  libtorch's arguments for the library's ReduceLROnPlateau
//   and all others of the library (optim/lr_scheduler.h), which count epochs as Python does
//
// libtorch's StepLR counts the calls of step() from 0: it changes the rate one call later than Python's StepLR, which
// is retrograd::optim::StepLR. A program's rates stay what they were with libtorch.
// Limit: the optimizer must outlive its schedulers.
#pragma once

#include "optim/lr_scheduler.h"
#include "torch/optim.h"

#pragma GCC visibility push(default)
namespace torch::optim {

class LRScheduler {
 public:
  explicit LRScheduler(Optimizer& optimizer) : optimizer_(optimizer) {}
  virtual ~LRScheduler() = default;
  /// Sets the rates that get_lrs() gives. Error(bad_argument) for another number of rates than groups.
  void step();

 protected:
  /// The next rates, one for each group.
  virtual std::vector<double> get_lrs() = 0;
  std::vector<double> get_current_lrs() const;
  unsigned step_count_ = 0;  // calls of step() before this one

 private:
  Optimizer& optimizer_;
};

/// Times gamma in each step whose number, from 0, is a multiple of step_size other than 0.
class StepLR : public LRScheduler {
 public:
  StepLR(Optimizer& optimizer, unsigned step_size, double gamma = 0.1);

 private:
  std::vector<double> get_lrs() override;
  unsigned step_size_;
  double gamma_;
};

class ReduceLROnPlateauScheduler {
 public:
  enum SchedulerMode { min, max };
  enum ThresholdMode { rel, abs };
  /// min_lrs: one for each group, or none, which is 0. `verbose` has no effect.
  ReduceLROnPlateauScheduler(Optimizer& optimizer, SchedulerMode mode = min, float factor = 0.1F,
                             int patience = 10, double threshold = 1e-4, ThresholdMode threshold_mode = rel,
                             int cooldown = 0, const std::vector<float>& min_lrs = {}, double eps = 1e-8,
                             bool verbose = false);
  void step(float metric) { scheduler_.step(static_cast<double>(metric)); }

 private:
  retrograd::optim::ReduceLROnPlateau scheduler_;
};

using retrograd::optim::ChainedScheduler;
using retrograd::optim::ConstantLR;
using retrograd::optim::CosineAnnealingLR;
using retrograd::optim::CosineAnnealingWarmRestarts;
using retrograd::optim::CyclicLR;
using retrograd::optim::ExponentialLR;
using retrograd::optim::LambdaLR;
using retrograd::optim::LinearLR;
using retrograd::optim::MultiplicativeLR;
using retrograd::optim::MultiStepLR;
using retrograd::optim::OneCycleLR;
using retrograd::optim::PolynomialLR;
using retrograd::optim::SequentialLR;

}  // namespace torch::optim
#pragma GCC visibility pop
