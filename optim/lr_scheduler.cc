// See optim/lr_scheduler.h. The rates are those of torch.optim.lr_scheduler 2.15, to the last bits but for the order of
// roundings.
#include "optim/lr_scheduler.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include "ops/creation.h"

namespace retrograd::inline v0::optim {
namespace {

constexpr double kSchedulePi = std::numbers::pi;

[[noreturn]] void refuse(std::string_view scheduler, std::string_view text) {
  fail(Category::bad_argument, scheduler, text, {});
}

void require_positive(std::string_view scheduler, std::string_view what, int64_t value) {
  if (value < 1) refuse(scheduler, fmt::format("{} must be at least 1, it is {}", what, value));
}

Tensor list_of(const std::vector<double>& values) {
  return tensor(values, {static_cast<int64_t>(values.size())}, {kFloat64});
}

// Takes entries out of a saved state.
class Saved {
 public:
  Saved(const StateDict& state, SourceLocation where) : rest_(state), where_(where) {}

  double number(std::string_view key) { return take(key).item<double>(where_); }
  int64_t count(std::string_view key) { return take(key).item<int64_t>(where_); }
  std::vector<double> list(std::string_view key, size_t size) {
    std::vector<double> values = take(key).to_vector();
    if (values.size() != size)
      refuse("load_state_dict", fmt::format("\"{}\" has {} numbers for {} groups", key, values.size(), size));
    return values;
  }
  // The entries "<prefix>.*", without the prefix.
  StateDict part(std::string_view prefix) {
    StateDict found;
    for (auto it = rest_.begin(); it != rest_.end();) {
      if (it->first.starts_with(prefix) && it->first.substr(prefix.size()).starts_with('.')) {
        found.emplace(it->first.substr(prefix.size() + 1), it->second);
        it = rest_.erase(it);
      } else {
        ++it;
      }
    }
    return found;
  }
  const StateDict& rest() const { return rest_; }
  void end() const {
    if (!rest_.empty())
      refuse("load_state_dict", fmt::format("\"{}\" is not a state of this scheduler", rest_.begin()->first));
  }

 private:
  Tensor take(std::string_view key) {
    const auto it = rest_.find(key);
    if (it == rest_.end()) refuse("load_state_dict", fmt::format("there is no \"{}\"", key));
    const Tensor value = it->second;
    rest_.erase(it);
    return value;
  }

  StateDict rest_;
  SourceLocation where_;
};

void add_parts(StateDict& out, const std::vector<std::shared_ptr<LRScheduler>>& schedulers) {
  for (size_t i = 0; i < schedulers.size(); ++i)
    for (auto& [key, value] : schedulers[i]->state_dict())
      out.emplace(fmt::format("_schedulers.{}.{}", i, key), value);
}

std::vector<StateDict> take_parts(Saved& saved, size_t count) {
  std::vector<StateDict> parts;
  for (size_t i = 0; i < count; ++i) parts.push_back(saved.part(fmt::format("_schedulers.{}", i)));
  return parts;
}

// As a list has one of each group, or one for all.
const LRLambda& of_group(const std::vector<LRLambda>& lambdas, size_t group) {
  return lambdas.size() == 1 ? lambdas[0] : lambdas[group];
}
void check_lambdas(std::string_view scheduler, const std::vector<LRLambda>& lambdas,
                   const Optimizer& optimizer) {
  if (lambdas.size() != optimizer.group_count())
    refuse(scheduler, fmt::format("{} functions for {} groups", lambdas.size(), optimizer.group_count()));
}

double annealed(AnnealStrategy strategy, double from, double to, double share) {
  if (strategy == AnnealStrategy::linear) return (to - from) * share + from;
  return to + (from - to) / 2 * (std::cos(kSchedulePi * share) + 1);
}

bool has_momentum(const OptimizerParamGroup& group) {
  return group.has_option("momentum") || group.has_option("betas");
}
void check_momentum(std::string_view scheduler, Optimizer& optimizer, bool is_cycled) {
  for (size_t g = 0; g < optimizer.group_count() && is_cycled; ++g)
    if (!has_momentum(optimizer.param_group(g)))
      refuse(scheduler, "the optimizer has no momentum or betas to cycle. Hint: .cycle_momentum = false");
}
void set_momentum(const OptimizerParamGroup& group, double value) {
  group.set_option(group.has_option("betas") ? "betas" : "momentum", value);
}

}  // namespace

void PerGroup::check(std::string_view scheduler, const Optimizer& optimizer) const {
  if (is_list_ && values_.size() != optimizer.group_count())
    refuse(scheduler, fmt::format("{} numbers for {} groups", values_.size(), optimizer.group_count()));
}

// ---- the base ---------------------------------------------------------------------------------------------

LRScheduler::LRScheduler(Optimizer& optimizer) : optimizer_(&optimizer) {
  for (size_t g = 0; g < optimizer.group_count(); ++g) {
    const OptimizerParamGroup group = optimizer.param_group(g);
    if (!group.initial_lr()) group.initial_lr() = group.lr();
    base_lrs_.push_back(*group.initial_lr());
  }
}

void LRScheduler::begin() {
  ++last_epoch_;
  set_lrs(true, false);
}

void LRScheduler::step() {
  ++last_epoch_;
  set_lrs(false, false);
}

void LRScheduler::step_to(int64_t epoch) {
  last_epoch_ = epoch;
  set_lrs(false, true);
}

void LRScheduler::set_lrs(bool is_first, bool from_initial) {
  if (base_lrs_.size() != optimizer_->group_count())
    refuse("LRScheduler",
           fmt::format("it was made for {} parameter groups, there are {}. Hint: add groups before "
                       "making schedulers",
                       base_lrs_.size(), optimizer_->group_count()));
  std::vector<double> lrs;
  for (size_t g = 0; g < base_lrs_.size(); ++g) {
    const Epoch epoch{last_epoch_, is_first, g, optimizer_->param_group(g).lr(), base_lrs_[g]};
    lrs.push_back(from_initial ? lr_at(epoch) : next_lr(epoch));
  }
  set_others(last_epoch_);
  for (size_t g = 0; g < lrs.size(); ++g) optimizer_->param_group(g).set_lr(lrs[g]);
  last_lr_ = std::move(lrs);
}

void LRScheduler::take_lrs() {
  last_lr_.clear();
  for (size_t g = 0; g < optimizer_->group_count(); ++g) last_lr_.push_back(optimizer_->param_group(g).lr());
}

StateDict LRScheduler::state_dict() const {
  StateDict out;
  out.emplace("last_epoch", scalar_tensor(last_epoch_, {kInt64}));
  out.emplace("base_lrs", list_of(base_lrs_));
  out.emplace("_last_lr", list_of(last_lr_));
  return out;
}

void LRScheduler::load_state_dict(const StateDict& state, SourceLocation where) {
  Saved saved(state, where);
  const int64_t last_epoch = saved.count("last_epoch");
  std::vector<double> base_lrs = saved.list("base_lrs", base_lrs_.size());
  std::vector<double> last_lr = saved.list("_last_lr", base_lrs_.size());
  saved.end();
  last_epoch_ = last_epoch;
  base_lrs_ = std::move(base_lrs);
  last_lr_ = std::move(last_lr);
}

// ---- schedules --------------------------------------------------------------------------------------------

LambdaLR::LambdaLR(Optimizer& optimizer, LRLambda lambda)
    : LRScheduler(optimizer), lambdas_{std::move(lambda)} {
  begin();
}
LambdaLR::LambdaLR(Optimizer& optimizer, std::vector<LRLambda> lambdas)
    : LRScheduler(optimizer), lambdas_(std::move(lambdas)) {
  check_lambdas("LambdaLR", lambdas_, optimizer);
  begin();
}
double LambdaLR::next_lr(const Epoch& e) const {
  return e.initial_lr * of_group(lambdas_, e.group)(e.number);
}

MultiplicativeLR::MultiplicativeLR(Optimizer& optimizer, LRLambda lambda)
    : LRScheduler(optimizer), lambdas_{std::move(lambda)} {
  begin();
}
MultiplicativeLR::MultiplicativeLR(Optimizer& optimizer, std::vector<LRLambda> lambdas)
    : LRScheduler(optimizer), lambdas_(std::move(lambdas)) {
  check_lambdas("MultiplicativeLR", lambdas_, optimizer);
  begin();
}
double MultiplicativeLR::next_lr(const Epoch& e) const {
  return e.is_first ? e.lr : e.lr * of_group(lambdas_, e.group)(e.number);
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
    refuse("ConstantLR", fmt::format("factor must be in (0, 1], it is {}", factor));
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
    refuse("LinearLR", fmt::format("start_factor must be in (0, 1], it is {}", start_factor));
  if (!(end_factor >= 0 && end_factor <= 1))
    refuse("LinearLR", fmt::format("end_factor must be in [0, 1], it is {}", end_factor));
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
    return e.lr + (e.initial_lr - eta_min_) * (1 - std::cos(kSchedulePi / T)) / 2;
  return (1 + std::cos(kSchedulePi * t / T)) / (1 + std::cos(kSchedulePi * (t - 1) / T)) * (e.lr - eta_min_) +
         eta_min_;
}
double CosineAnnealingLR::lr_at(const Epoch& e) const {
  const double angle = kSchedulePi * static_cast<double>(e.number) / static_cast<double>(T_max_);
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
  return eta_min_ + (e.initial_lr - eta_min_) * (1 + std::cos(kSchedulePi * share)) / 2;
}

CyclicLR::CyclicLR(Optimizer& optimizer, PerGroup base_lr, PerGroup max_lr, CyclicLROptions options)
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

OneCycleLR::OneCycleLR(Optimizer& optimizer, PerGroup max_lr, int64_t total_steps, OneCycleLROptions options)
    : LRScheduler(optimizer), max_lr_(std::move(max_lr)), total_steps_(total_steps), options_(options) {
  max_lr_.check("OneCycleLR", optimizer);
  require_positive("OneCycleLR", "total_steps", total_steps);
  if (!(options.pct_start >= 0 && options.pct_start <= 1))
    refuse("OneCycleLR", fmt::format("pct_start must be in [0, 1], it is {}", options.pct_start));
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
  if (e.number > total_steps_) refuse("OneCycleLR", fmt::format("step {} of {}", e.number, total_steps_));
  return between(e.number, [&](Level level) { return lr_of(level, e.group); });
}
void OneCycleLR::set_others(int64_t epoch) {
  if (!options_.cycle_momentum) return;
  const double momentum = between(epoch, [&](Level level) { return momentum_of(level); });
  for (size_t g = 0; g < optimizer().group_count(); ++g) set_momentum(optimizer().param_group(g), momentum);
}

SWALR::SWALR(Optimizer& optimizer, PerGroup swa_lr, int64_t anneal_epochs, AnnealStrategy strategy)
    : LRScheduler(optimizer), swa_lr_(std::move(swa_lr)), anneal_epochs_(anneal_epochs), strategy_(strategy) {
  swa_lr_.check("SWALR", optimizer);
  if (anneal_epochs < 0)
    refuse("SWALR", fmt::format("anneal_epochs must be at least 0, it is {}", anneal_epochs));
  begin();
}
double SWALR::share(double epoch) const {
  const double t = std::clamp(epoch / static_cast<double>(std::max<int64_t>(1, anneal_epochs_)), 0.0, 1.0);
  return strategy_ == AnnealStrategy::cos ? (1 - std::cos(kSchedulePi * t)) / 2 : t;
}
double SWALR::next_lr(const Epoch& e) const {
  const int64_t step = anneal_epochs_ == 0 ? std::max<int64_t>(1, e.number) : e.number;
  const double before = share(static_cast<double>(step - 1)), now = share(static_cast<double>(step));
  const double target = swa_lr_.at(e.group);
  const double first = before == 1 ? target : (e.lr - before * target) / (1 - before);
  return target * now + first * (1 - now);
}

// ---- of several schedulers --------------------------------------------------------------------------------

namespace {
void check_schedulers(std::string_view name, const std::vector<std::shared_ptr<LRScheduler>>& schedulers,
                      const Optimizer* optimizer) {
  if (schedulers.empty()) refuse(name, "there is no scheduler");
  for (const auto& scheduler : schedulers) {
    if (!scheduler) refuse(name, "a scheduler is null");
    if (&scheduler->optimizer() != (optimizer ? optimizer : &schedulers[0]->optimizer()))
      refuse(name, "the schedulers are of different optimizers");
  }
}
}  // namespace

SequentialLR::SequentialLR(Optimizer& optimizer, std::vector<std::shared_ptr<LRScheduler>> schedulers,
                           std::vector<int64_t> milestones)
    : LRScheduler(optimizer), schedulers_(std::move(schedulers)), milestones_(std::move(milestones)) {
  check_schedulers("SequentialLR", schedulers_, &optimizer);
  if (milestones_.size() + 1 != schedulers_.size())
    refuse("SequentialLR", fmt::format("{} milestones for {} schedulers: it needs one fewer",
                                       milestones_.size(), schedulers_.size()));
  if (!std::ranges::is_sorted(milestones_))
    refuse("SequentialLR", "the milestones are not in ascending order");
  for (size_t g = 0; g < optimizer.group_count(); ++g)
    optimizer.param_group(g).set_lr(*optimizer.param_group(g).initial_lr());
  for (const auto& scheduler : schedulers_) scheduler->undo();
  begin();
}
size_t SequentialLR::index_at(int64_t epoch) const {
  return static_cast<size_t>(std::ranges::upper_bound(milestones_, epoch) - milestones_.begin());
}
void SequentialLR::begin() {
  last_epoch_ = 0;
  schedulers_[index_at(0)]->begin();
  take_lrs();
}
void SequentialLR::undo() {
  --last_epoch_;
  for (const auto& scheduler : schedulers_) scheduler->undo();
}
void SequentialLR::step() {
  const size_t i = index_at(++last_epoch_);
  if (i > 0 && milestones_[i - 1] == last_epoch_)
    schedulers_[i]->step_to(0);
  else
    schedulers_[i]->step();
  take_lrs();
}
void SequentialLR::step_to(int64_t epoch) {
  last_epoch_ = epoch;
  const size_t i = index_at(epoch);
  schedulers_[i]->step_to(epoch - (i > 0 ? milestones_[i - 1] : 0));
  take_lrs();
}
StateDict SequentialLR::state_dict() const {
  StateDict out = LRScheduler::state_dict();
  add_parts(out, schedulers_);
  return out;
}
void SequentialLR::load_state_dict(const StateDict& state, SourceLocation where) {
  Saved saved(state, where);
  const std::vector<StateDict> parts = take_parts(saved, schedulers_.size());
  for (size_t i = 0; i < parts.size(); ++i) schedulers_[i]->load_state_dict(parts[i], where);
  LRScheduler::load_state_dict(saved.rest(), where);
}

ChainedScheduler::ChainedScheduler(std::vector<std::shared_ptr<LRScheduler>> schedulers)
    : LRScheduler((check_schedulers("ChainedScheduler", schedulers, nullptr), schedulers[0]->optimizer())),
      schedulers_(std::move(schedulers)) {
  begin();
}
void ChainedScheduler::begin() {
  last_epoch_ = 0;
  take_lrs();
}
void ChainedScheduler::undo() {
  --last_epoch_;
  for (const auto& scheduler : schedulers_) scheduler->undo();
}
void ChainedScheduler::step() {
  ++last_epoch_;
  for (const auto& scheduler : schedulers_) scheduler->step();
  take_lrs();
}
void ChainedScheduler::step_to(int64_t epoch) {
  last_epoch_ = epoch;
  for (const auto& scheduler : schedulers_) scheduler->step_to(epoch);
  take_lrs();
}
StateDict ChainedScheduler::state_dict() const {
  StateDict out = LRScheduler::state_dict();
  add_parts(out, schedulers_);
  return out;
}
void ChainedScheduler::load_state_dict(const StateDict& state, SourceLocation where) {
  Saved saved(state, where);
  const std::vector<StateDict> parts = take_parts(saved, schedulers_.size());
  for (size_t i = 0; i < parts.size(); ++i) schedulers_[i]->load_state_dict(parts[i], where);
  LRScheduler::load_state_dict(saved.rest(), where);
}

// ---- by a measure -----------------------------------------------------------------------------------------

ReduceLROnPlateau::ReduceLROnPlateau(Optimizer& optimizer, ReduceLROnPlateauOptions options)
    : optimizer_(&optimizer), options_(std::move(options)) {
  using Mode = ReduceLROnPlateauOptions::Mode;
  if (!(options_.factor < 1))
    refuse("ReduceLROnPlateau", fmt::format("factor must be below 1, it is {}", options_.factor));
  options_.min_lr.check("ReduceLROnPlateau", optimizer);
  best_ = options_.mode == Mode::min ? ops::kUnlimited : -ops::kUnlimited;
  take_lrs();
}

bool ReduceLROnPlateau::is_better(double value) const {
  const bool is_min = options_.mode == ReduceLROnPlateauOptions::Mode::min;
  if (options_.threshold_mode == ReduceLROnPlateauOptions::ThresholdMode::rel)
    return is_min ? value < best_ * (1 - options_.threshold) : value > best_ * (options_.threshold + 1);
  return is_min ? value < best_ - options_.threshold : value > best_ + options_.threshold;
}

void ReduceLROnPlateau::take_lrs() {
  last_lr_.clear();
  for (size_t g = 0; g < optimizer_->group_count(); ++g) last_lr_.push_back(optimizer_->param_group(g).lr());
}

void ReduceLROnPlateau::step(double metrics) {
  ++last_epoch_;
  if (is_better(metrics)) {
    best_ = metrics;
    num_bad_epochs_ = 0;
  } else {
    ++num_bad_epochs_;
  }
  if (cooldown_counter_ > 0) {
    --cooldown_counter_;
    num_bad_epochs_ = 0;
  }
  if (num_bad_epochs_ > options_.patience) {
    for (size_t g = 0; g < optimizer_->group_count(); ++g) {
      const OptimizerParamGroup group = optimizer_->param_group(g);
      const double reduced = std::max(group.lr() * options_.factor, options_.min_lr.at(g));
      if (group.lr() - reduced > options_.eps) group.set_lr(reduced);
    }
    cooldown_counter_ = options_.cooldown;
    num_bad_epochs_ = 0;
  }
  take_lrs();
}

StateDict ReduceLROnPlateau::state_dict() const {
  StateDict out;
  out.emplace("best", scalar_tensor(best_, {kFloat64}));
  out.emplace("last_epoch", scalar_tensor(last_epoch_, {kInt64}));
  out.emplace("num_bad_epochs", scalar_tensor(num_bad_epochs_, {kInt64}));
  out.emplace("cooldown_counter", scalar_tensor(cooldown_counter_, {kInt64}));
  out.emplace("_last_lr", list_of(last_lr_));
  return out;
}

void ReduceLROnPlateau::load_state_dict(const StateDict& state, SourceLocation where) {
  Saved saved(state, where);
  const double best = saved.number("best");
  const int64_t last_epoch = saved.count("last_epoch"), num_bad_epochs = saved.count("num_bad_epochs"),
                cooldown_counter = saved.count("cooldown_counter");
  std::vector<double> last_lr = saved.list("_last_lr", optimizer_->group_count());
  saved.end();
  best_ = best, last_epoch_ = last_epoch, num_bad_epochs_ = num_bad_epochs,
  cooldown_counter_ = cooldown_counter;
  last_lr_ = std::move(last_lr);
}

}  // namespace retrograd::optim
