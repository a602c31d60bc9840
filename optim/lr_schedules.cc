// The schedules of optim/lr_scheduler.h, one by one. The rates are those of torch.optim.lr_scheduler 2.15, but for the order
// of roundings.
#include <algorithm>
#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include "optim/lr_scheduler.h"

namespace retrograd::inline v0::optim {
namespace {

using detail::refuse_schedule;

void require_positive(std::string_view scheduler, std::string_view what, int64_t value) {
  if (value < 1) refuse_schedule(scheduler, fmt::format("{} must be at least 1, it is {}", what, value));
}

double annealed(AnnealStrategy strategy, double from, double to, double share) {
  if (strategy == AnnealStrategy::linear) return (to - from) * share + from;
  return to + (from - to) / 2 * (std::cos(std::numbers::pi * share) + 1);
}

bool has_momentum(const OptimizerParamGroup& group) {
  return group.has_option("momentum") || group.has_option("betas");
}
void check_momentum(std::string_view scheduler, Optimizer& optimizer, bool is_cycled) {
  for (size_t g = 0; g < optimizer.group_count() && is_cycled; ++g)
    if (!has_momentum(optimizer.param_group(g)))
      refuse_schedule(scheduler,
                      "the optimizer has no momentum or betas to cycle. Hint: .cycle_momentum = false");
}
void set_momentum(const OptimizerParamGroup& group, double value) {
  group.set_option(group.has_option("betas") ? "betas" : "momentum", value);
}

}  // namespace

LambdaLR::LambdaLR(Optimizer& optimizer, PerGroup<LRLambda> lambdas)
    : LRScheduler(optimizer), lambdas_(std::move(lambdas)) {
  lambdas_.check("LambdaLR", optimizer);
  begin();
}
double LambdaLR::next_lr(const Epoch& e) const { return e.initial_lr * lambdas_.at(e.group)(e.number); }

MultiplicativeLR::MultiplicativeLR(Optimizer& optimizer, PerGroup<LRLambda> lambdas)
    : LRScheduler(optimizer), lambdas_(std::move(lambdas)) {
  lambdas_.check("MultiplicativeLR", optimizer);
  begin();
}
double MultiplicativeLR::next_lr(const Epoch& e) const {
  return e.is_first ? e.lr : e.lr * lambdas_.at(e.group)(e.number);
}

StepLR::StepLR(Optimizer& optimizer, int64_t step_size, double gamma)
    : LRScheduler(optimizer), step_size_(step_size), gamma_(gamma) {
  require_positive("StepLR", "step_size", step_size);
  begin();
}
double StepLR::next_lr(const Epoch& e) const {
  return e.number == 0 || e.number % step_size_ != 0 ? e.lr : e.lr * gamma_;
}
double StepLR::lr_at(const Epoch& e) const {
  return e.initial_lr * std::pow(gamma_, static_cast<double>(e.number / step_size_));
}

MultiStepLR::MultiStepLR(Optimizer& optimizer, const std::vector<int64_t>& milestones, double gamma)
    : LRScheduler(optimizer), milestones_(milestones), gamma_(gamma) {
  std::ranges::sort(milestones_);
  begin();
}
double MultiStepLR::next_lr(const Epoch& e) const {
  const auto times = std::ranges::count(milestones_, e.number);
  return times == 0 ? e.lr : e.lr * std::pow(gamma_, static_cast<double>(times));
}
double MultiStepLR::lr_at(const Epoch& e) const {
  const auto past = std::ranges::upper_bound(milestones_, e.number) - milestones_.begin();
  return e.initial_lr * std::pow(gamma_, static_cast<double>(past));
}

ConstantLR::ConstantLR(Optimizer& optimizer, double factor, int64_t total_iters)
    : LRScheduler(optimizer), factor_(factor), total_iters_(total_iters) {
  if (!(factor > 0 && factor <= 1))
    refuse_schedule("ConstantLR", fmt::format("factor must be in (0, 1], it is {}", factor));
  begin();
}
double ConstantLR::next_lr(const Epoch& e) const {
  if (e.number == 0) return e.lr * factor_;
  return e.number == total_iters_ ? e.lr * (1 / factor_) : e.lr;
}
double ConstantLR::lr_at(const Epoch& e) const {
  return e.initial_lr * (factor_ + (e.number >= total_iters_ ? 1 - factor_ : 0));
}

LinearLR::LinearLR(Optimizer& optimizer, double start_factor, double end_factor, int64_t total_iters)
    : LRScheduler(optimizer),
      start_factor_(start_factor),
      end_factor_(end_factor),
      total_iters_(total_iters) {
  if (!(start_factor > 0 && start_factor <= 1))
    refuse_schedule("LinearLR", fmt::format("start_factor must be in (0, 1], it is {}", start_factor));
  if (!(end_factor >= 0 && end_factor <= 1))
    refuse_schedule("LinearLR", fmt::format("end_factor must be in [0, 1], it is {}", end_factor));
  require_positive("LinearLR", "total_iters", total_iters);
  begin();
}
double LinearLR::next_lr(const Epoch& e) const {
  if (e.number == 0) return e.lr * start_factor_;
  if (e.is_first || e.number > total_iters_) return e.lr;
  const double change = end_factor_ - start_factor_;
  return e.lr * (1 + change / (static_cast<double>(total_iters_) * start_factor_ +
                               static_cast<double>(e.number - 1) * change));
}
double LinearLR::lr_at(const Epoch& e) const {
  const double done = static_cast<double>(std::min(total_iters_, e.number));
  return e.initial_lr *
         (start_factor_ + (end_factor_ - start_factor_) * done / static_cast<double>(total_iters_));
}

ExponentialLR::ExponentialLR(Optimizer& optimizer, double gamma) : LRScheduler(optimizer), gamma_(gamma) {
  begin();
}
double ExponentialLR::next_lr(const Epoch& e) const { return e.is_first ? e.lr : e.lr * gamma_; }
double ExponentialLR::lr_at(const Epoch& e) const {
  return e.initial_lr * std::pow(gamma_, static_cast<double>(e.number));
}

PolynomialLR::PolynomialLR(Optimizer& optimizer, int64_t total_iters, double power)
    : LRScheduler(optimizer), total_iters_(total_iters), power_(power) {
  require_positive("PolynomialLR", "total_iters", total_iters);
  begin();
}
double PolynomialLR::next_lr(const Epoch& e) const {
  if (e.is_first || e.number > total_iters_) return e.lr;
  const auto left = [&](int64_t epoch) {
    return 1 - static_cast<double>(epoch) / static_cast<double>(total_iters_);
  };
  return e.lr * std::pow(left(e.number) / left(e.number - 1), power_);
}
double PolynomialLR::lr_at(const Epoch& e) const {
  const double done = static_cast<double>(std::min(total_iters_, e.number));
  return e.initial_lr * std::pow(1 - done / static_cast<double>(total_iters_), power_);
}

CosineAnnealingLR::CosineAnnealingLR(Optimizer& optimizer, int64_t T_max, double eta_min)
    : LRScheduler(optimizer), T_max_(T_max), eta_min_(eta_min) {
  require_positive("CosineAnnealingLR", "T_max", T_max);
  begin();
}
double CosineAnnealingLR::next_lr(const Epoch& e) const {
  if (e.is_first) return e.lr;
  const double T = static_cast<double>(T_max_), t = static_cast<double>(e.number);
  // From the minimum, where the ratio below would be 0 / 0.
  if ((e.number - 1 - T_max_) % (2 * T_max_) == 0)
    return e.lr + (e.initial_lr - eta_min_) * (1 - std::cos(std::numbers::pi / T)) / 2;
  return (1 + std::cos(std::numbers::pi * t / T)) / (1 + std::cos(std::numbers::pi * (t - 1) / T)) *
             (e.lr - eta_min_) +
         eta_min_;
}
double CosineAnnealingLR::lr_at(const Epoch& e) const {
  const double angle = std::numbers::pi * static_cast<double>(e.number) / static_cast<double>(T_max_);
  return eta_min_ + (e.initial_lr - eta_min_) * (1 + std::cos(angle)) / 2;
}

CosineAnnealingWarmRestarts::CosineAnnealingWarmRestarts(Optimizer& optimizer, int64_t T_0, int64_t T_mult,
                                                         double eta_min)
    : LRScheduler(optimizer), T_0_(T_0), T_mult_(T_mult), eta_min_(eta_min) {
  require_positive("CosineAnnealingWarmRestarts", "T_0", T_0);
  require_positive("CosineAnnealingWarmRestarts", "T_mult", T_mult);
  begin();
}
double CosineAnnealingWarmRestarts::next_lr(const Epoch& e) const {
  int64_t begin = 0, length = T_0_;
  if (T_mult_ == 1)
    begin = e.number / T_0_ * T_0_;
  else
    while (e.number - begin >= length) begin += length, length *= T_mult_;
  const double share = static_cast<double>(e.number - begin) / static_cast<double>(length);
  return eta_min_ + (e.initial_lr - eta_min_) * (1 + std::cos(std::numbers::pi * share)) / 2;
}

CyclicLR::CyclicLR(Optimizer& optimizer, PerGroup<double> base_lr, PerGroup<double> max_lr,
                   CyclicLROptions options)
    : LRScheduler(optimizer),
      base_lr_(std::move(base_lr)),
      max_lr_(std::move(max_lr)),
      options_(std::move(options)) {
  base_lr_.check("CyclicLR", optimizer), max_lr_.check("CyclicLR", optimizer);
  require_positive("CyclicLR", "step_size_up", options_.step_size_up);
  require_positive("CyclicLR", "step_size_down", options_.step_size_down.value_or(1));
  check_momentum("CyclicLR", optimizer, options_.cycle_momentum);
  begin();
}
// How far above the lower rate: the share of the cycle's height, scaled.
double CyclicLR::height(int64_t epoch) const {
  const auto up = static_cast<double>(options_.step_size_up);
  const double total = up + static_cast<double>(options_.step_size_down.value_or(options_.step_size_up));
  const double at = 1 + static_cast<double>(epoch) / total, cycle = std::floor(at), x = at - cycle,
               ratio = up / total;
  const double share = x <= ratio ? x / ratio : (x - 1) / (ratio - 1);
  if (options_.scale_fn) return share * options_.scale_fn(cycle);
  switch (options_.mode) {
    case CyclicLROptions::Mode::triangular: return share;
    case CyclicLROptions::Mode::triangular2: return share / std::pow(2.0, cycle - 1);
    case CyclicLROptions::Mode::exp_range:
      return share * std::pow(options_.gamma, static_cast<double>(epoch));
  }
  return share;
}
double CyclicLR::next_lr(const Epoch& e) const {
  const double base = base_lr_.at(e.group);
  return base + (max_lr_.at(e.group) - base) * height(e.number);
}
void CyclicLR::set_others(int64_t epoch) {
  if (!options_.cycle_momentum) return;
  const double range = options_.max_momentum - options_.base_momentum;
  for (size_t g = 0; g < optimizer().group_count(); ++g)
    set_momentum(optimizer().param_group(g), options_.max_momentum - range * height(epoch));
}

OneCycleLR::OneCycleLR(Optimizer& optimizer, PerGroup<double> max_lr, int64_t total_steps,
                       OneCycleLROptions options)
    : LRScheduler(optimizer), max_lr_(std::move(max_lr)), total_steps_(total_steps), options_(options) {
  max_lr_.check("OneCycleLR", optimizer);
  require_positive("OneCycleLR", "total_steps", total_steps);
  if (!(options.pct_start >= 0 && options.pct_start <= 1))
    refuse_schedule("OneCycleLR", fmt::format("pct_start must be in [0, 1], it is {}", options.pct_start));
  check_momentum("OneCycleLR", optimizer, options.cycle_momentum);
  const double all = static_cast<double>(total_steps), up = options.pct_start * all;
  phases_.push_back({up - 1, Level::initial, Level::max});
  if (options.three_phase) phases_.push_back({2 * up - 2, Level::max, Level::initial});
  phases_.push_back({all - 1, phases_.back().to, Level::min});
  for (size_t g = 0; g < optimizer.group_count(); ++g)
    optimizer.param_group(g).initial_lr() = lr_of(Level::initial, g);
  begin();
}
double OneCycleLR::lr_of(Level level, size_t group) const {
  const double max = max_lr_.at(group), initial = max / options_.div_factor;
  return level == Level::max ? max : level == Level::initial ? initial : initial / options_.final_div_factor;
}
template <class F>
double OneCycleLR::between(int64_t epoch, const F& value) const {
  double start = 0;
  const double at = static_cast<double>(epoch);
  for (const Phase& phase : phases_) {
    if (at <= phase.end || &phase == &phases_.back())
      return annealed(options_.anneal_strategy, value(phase.from), value(phase.to),
                      (at - start) / (phase.end - start));
    start = phase.end;
  }
  return 0;
}
double OneCycleLR::next_lr(const Epoch& e) const {
  if (e.number > total_steps_)
    refuse_schedule("OneCycleLR", fmt::format("step {} of {}", e.number, total_steps_));
  return between(e.number, [&](Level level) { return lr_of(level, e.group); });
}
void OneCycleLR::set_others(int64_t epoch) {
  if (!options_.cycle_momentum) return;
  const double momentum = between(epoch, [&](Level level) { return momentum_of(level); });
  for (size_t g = 0; g < optimizer().group_count(); ++g) set_momentum(optimizer().param_group(g), momentum);
}

SWALR::SWALR(Optimizer& optimizer, PerGroup<double> swa_lr, int64_t anneal_epochs, AnnealStrategy strategy)
    : LRScheduler(optimizer), swa_lr_(std::move(swa_lr)), anneal_epochs_(anneal_epochs), strategy_(strategy) {
  swa_lr_.check("SWALR", optimizer);
  if (anneal_epochs < 0)
    refuse_schedule("SWALR", fmt::format("anneal_epochs must be at least 0, it is {}", anneal_epochs));
  begin();
}
double SWALR::share(double epoch) const {
  const double t = std::clamp(epoch / static_cast<double>(std::max<int64_t>(1, anneal_epochs_)), 0.0, 1.0);
  return strategy_ == AnnealStrategy::cos ? (1 - std::cos(std::numbers::pi * t)) / 2 : t;
}
double SWALR::next_lr(const Epoch& e) const {
  const int64_t step = anneal_epochs_ == 0 ? std::max<int64_t>(1, e.number) : e.number;
  const double before = share(static_cast<double>(step - 1)), now = share(static_cast<double>(step));
  const double target = swa_lr_.at(e.group);
  const double first = before == 1 ? target : (e.lr - before * target) / (1 - before);
  return target * now + first * (1 - now);
}

}  // namespace retrograd::optim
