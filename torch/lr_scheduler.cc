// See torch/lr_scheduler.h.
#include "torch/lr_scheduler.h"

#include <fmt/format.h>

namespace torch::optim {

using retrograd::Category;
using retrograd::optim::ReduceLROnPlateauOptions;

void LRScheduler::step() {
  const std::vector<double> lrs = get_lrs();
  ParamGroups& groups = optimizer_.param_groups();
  if (lrs.size() != groups.size())
    retrograd::fail(Category::bad_argument, "LRScheduler",
                    fmt::format("{} rates for {} groups", lrs.size(), groups.size()));
  for (size_t g = 0; g < groups.size(); ++g) groups[g].options().set_lr(lrs[g]);
  ++step_count_;
}

std::vector<double> LRScheduler::get_current_lrs() const {
  std::vector<double> lrs;
  for (const OptimizerParamGroup& group : optimizer_.param_groups()) lrs.push_back(group.options().get_lr());
  return lrs;
}

StepLR::StepLR(Optimizer& optimizer, unsigned step_size, double gamma)
    : LRScheduler(optimizer), step_size_(step_size), gamma_(gamma) {
  if (step_size == 0) retrograd::fail(Category::bad_argument, "StepLR", "step_size is 0");
}

std::vector<double> StepLR::get_lrs() {
  std::vector<double> lrs = get_current_lrs();
  if (step_count_ > 0 && step_count_ % step_size_ == 0)
    for (double& lr : lrs) lr *= gamma_;
  return lrs;
}

namespace {

ReduceLROnPlateauOptions plateau_options(bool is_max, float factor, int patience, double threshold,
                                         bool is_abs, int cooldown, const std::vector<float>& min_lrs,
                                         double eps) {
  using Options = ReduceLROnPlateauOptions;
  Options options;
  options.mode = is_max ? Options::Mode::max : Options::Mode::min;
  options.factor = static_cast<double>(factor);
  options.patience = patience;
  options.threshold = threshold;
  options.threshold_mode = is_abs ? Options::ThresholdMode::abs : Options::ThresholdMode::rel;
  options.cooldown = cooldown;
  if (!min_lrs.empty()) options.min_lr = std::vector<double>(min_lrs.begin(), min_lrs.end());
  options.eps = eps;
  return options;
}

}  // namespace

ReduceLROnPlateauScheduler::ReduceLROnPlateauScheduler(Optimizer& optimizer, SchedulerMode mode, float factor,
                                                       int patience, double threshold,
                                                       ThresholdMode threshold_mode, int cooldown,
                                                       const std::vector<float>& min_lrs, double eps, bool)
    : scheduler_(optimizer, plateau_options(mode == max, factor, patience, threshold, threshold_mode == abs,
                                            cooldown, min_lrs, eps)) {}

}  // namespace torch::optim
