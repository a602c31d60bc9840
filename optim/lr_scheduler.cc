// See optim/lr_scheduler.h: what schedulers have in common, those made of others, and ReduceLROnPlateau. The schedules are in
// optim/lr_schedules.cc.
#include "optim/lr_scheduler.h"

#include <algorithm>

#include <fmt/format.h>

#include "ops/creation.h"
#include "optim/saved_values.h"

namespace retrograd::inline v0::optim {
namespace {

using detail::refuse_schedule;

std::vector<double> lrs_of(Optimizer& optimizer) {
  std::vector<double> lrs;
  for (size_t g = 0; g < optimizer.group_count(); ++g) lrs.push_back(optimizer.param_group(g).lr());
  return lrs;
}

// The same schedulers, of which there are some, and none is null.
std::vector<std::shared_ptr<LRScheduler>> present(std::string_view name,
                                                  std::vector<std::shared_ptr<LRScheduler>> schedulers) {
  if (schedulers.empty()) refuse_schedule(name, "there is no scheduler");
  if (std::ranges::count(schedulers, nullptr) > 0) refuse_schedule(name, "a scheduler is null");
  return schedulers;
}

}  // namespace

void detail::refuse_schedule(std::string_view scheduler, std::string_view text) {
  fail(Category::bad_argument, scheduler, text, {});
}

void detail::check_per_group(std::string_view scheduler, size_t values, const Optimizer& optimizer) {
  if (values != optimizer.group_count())
    refuse_schedule(scheduler, fmt::format("{} values for {} groups", values, optimizer.group_count()));
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
    refuse_schedule("LRScheduler",
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

void LRScheduler::take_lrs() { last_lr_ = lrs_of(*optimizer_); }

StateDict LRScheduler::state_dict() const {
  StateDict out;
  out.emplace("last_epoch", scalar_tensor(last_epoch_, {kInt64}));
  out.emplace("base_lrs", detail::list_of(base_lrs_));
  out.emplace("_last_lr", detail::list_of(last_lr_));
  return out;
}

void LRScheduler::load_state_dict(const StateDict& state, SourceLocation where) {
  detail::SavedValues saved(state, "this scheduler", where);
  const int64_t last_epoch = saved.count("last_epoch");
  std::vector<double> base_lrs = saved.list("base_lrs", base_lrs_.size());
  std::vector<double> last_lr = saved.list("_last_lr", base_lrs_.size());
  saved.end();
  last_epoch_ = last_epoch;
  base_lrs_ = std::move(base_lrs);
  last_lr_ = std::move(last_lr);
}

// ---- of several schedulers --------------------------------------------------------------------------------

ComposedScheduler::ComposedScheduler(std::string_view name, Optimizer& optimizer,
                                     std::vector<std::shared_ptr<LRScheduler>> schedulers)
    : LRScheduler(optimizer), schedulers_(std::move(schedulers)) {
  for (const auto& scheduler : schedulers_)
    if (&scheduler->optimizer() != &optimizer)
      refuse_schedule(name, "the schedulers are of different optimizers");
}

void ComposedScheduler::undo() {
  LRScheduler::undo();
  for (const auto& scheduler : schedulers_) scheduler->undo();
}

StateDict ComposedScheduler::state_dict() const {
  StateDict out = LRScheduler::state_dict();
  for (size_t i = 0; i < schedulers_.size(); ++i)
    for (auto& [key, value] : schedulers_[i]->state_dict())
      out.emplace(fmt::format("_schedulers.{}.{}", i, key), value);
  return out;
}

void ComposedScheduler::load_state_dict(const StateDict& state, SourceLocation where) {
  detail::SavedValues saved(state, "this scheduler", where);
  for (size_t i = 0; i < schedulers_.size(); ++i)
    schedulers_[i]->load_state_dict(saved.part(fmt::format("_schedulers.{}", i)), where);
  LRScheduler::load_state_dict(saved.rest(), where);
}

SequentialLR::SequentialLR(Optimizer& optimizer, std::vector<std::shared_ptr<LRScheduler>> schedulers,
                           std::vector<int64_t> milestones)
    : ComposedScheduler("SequentialLR", optimizer, present("SequentialLR", std::move(schedulers))),
      milestones_(std::move(milestones)) {
  if (milestones_.size() + 1 != schedulers_.size())
    refuse_schedule("SequentialLR", fmt::format("{} milestones for {} schedulers: it needs one fewer",
                                                milestones_.size(), schedulers_.size()));
  if (!std::ranges::is_sorted(milestones_))
    refuse_schedule("SequentialLR", "the milestones are not in ascending order");
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

ChainedScheduler::ChainedScheduler(std::vector<std::shared_ptr<LRScheduler>> schedulers)
    : ComposedScheduler("ChainedScheduler", present("ChainedScheduler", schedulers)[0]->optimizer(),
                        schedulers) {
  begin();
}
void ChainedScheduler::begin() {
  last_epoch_ = 0;
  take_lrs();
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

// ---- by a measure -----------------------------------------------------------------------------------------

ReduceLROnPlateau::ReduceLROnPlateau(Optimizer& optimizer, ReduceLROnPlateauOptions options)
    : optimizer_(&optimizer), options_(std::move(options)) {
  using Mode = ReduceLROnPlateauOptions::Mode;
  if (!(options_.factor < 1))
    refuse_schedule("ReduceLROnPlateau", fmt::format("factor must be below 1, it is {}", options_.factor));
  options_.min_lr.check("ReduceLROnPlateau", optimizer);
  best_ = options_.mode == Mode::min ? ops::kUnlimited : -ops::kUnlimited;
  last_lr_ = lrs_of(*optimizer_);
}

bool ReduceLROnPlateau::is_better(double value) const {
  const bool is_min = options_.mode == ReduceLROnPlateauOptions::Mode::min;
  if (options_.threshold_mode == ReduceLROnPlateauOptions::ThresholdMode::rel)
    return is_min ? value < best_ * (1 - options_.threshold) : value > best_ * (options_.threshold + 1);
  return is_min ? value < best_ - options_.threshold : value > best_ + options_.threshold;
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
  last_lr_ = lrs_of(*optimizer_);
}

StateDict ReduceLROnPlateau::state_dict() const {
  StateDict out;
  out.emplace("best", scalar_tensor(best_, {kFloat64}));
  out.emplace("last_epoch", scalar_tensor(last_epoch_, {kInt64}));
  out.emplace("num_bad_epochs", scalar_tensor(num_bad_epochs_, {kInt64}));
  out.emplace("cooldown_counter", scalar_tensor(cooldown_counter_, {kInt64}));
  out.emplace("_last_lr", detail::list_of(last_lr_));
  return out;
}

void ReduceLROnPlateau::load_state_dict(const StateDict& state, SourceLocation where) {
  detail::SavedValues saved(state, "this scheduler", where);
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
