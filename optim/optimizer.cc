// See optim/optimizer.h.
#include "optim/optimizer.h"

#include <atomic>
#include <unordered_map>

#include <fmt/format.h>

#include "engine/autocast.h"
#include "engine/runner.h"
#include "ops/copy.h"
#include "optim/param_state.h"
#include "optim/updates.h"

namespace retrograd::inline v0::optim {
namespace {

using detail::Groups;
using detail::OptimizerData;
using detail::ParamState;
using detail::RuleInfo;
using detail::StepInputs;
using detail::UpdateMode;

// The parameters of the groups, by group: a recorded step depends on them.
struct Place {
  size_t group;
  const TensorImpl* param;
};
using Places = std::vector<Place>;

bool fits(const Places& places, Groups& groups) {
  size_t next = 0;
  for (size_t g = 0; g < groups.size(); ++g)
    for (const Tensor& param : groups.params(g)) {
      if (next == places.size() || places[next].group != g || places[next].param != param.get()) return false;
      ++next;
    }
  return next == places.size();
}

Tensors all_params(Groups& groups) {
  Tensors all;
  for (size_t g = 0; g < groups.size(); ++g)
    all.insert(all.end(), groups.params(g).begin(), groups.params(g).end());
  return all;
}

// Sets or reads number `index` of one option.
class OptionAccess final : public detail::OptionVisitor {
 public:
  OptionAccess(std::string_view name, size_t index, const double* value)
      : name_(name), index_(index), value_(value) {}

  void numbers(std::string_view name, std::span<double> values, const ops::Domain&) override {
    if (name != name_ || index_ >= values.size()) return;
    if (value_) values[index_] = *value_;
    found_ = values[index_];
  }
  void flag(std::string_view name, bool& value) override {
    if (name != name_ || index_ > 0) return;
    if (value_) value = *value_ != 0;
    found_ = value;
  }
  void count(std::string_view name, int64_t& value, const ops::Domain&) override {
    if (name != name_ || index_ > 0) return;
    if (value_) value = static_cast<int64_t>(*value_);
    found_ = static_cast<double>(value);
  }
  std::optional<double> found() const { return found_; }

 private:
  std::string_view name_;
  size_t index_;
  const double* value_;
  std::optional<double> found_;
};

class OptionNames final : public detail::OptionVisitor {
 public:
  void numbers(std::string_view name, std::span<double>, const ops::Domain&) override {
    names.push_back(name);
  }
  void flag(std::string_view name, bool&) override { names.push_back(name); }
  void count(std::string_view name, int64_t&, const ops::Domain&) override { names.push_back(name); }
  std::vector<std::string_view> names;
};

}  // namespace

// ---- any optimizer ----------------------------------------------------------------------------------------

std::vector<std::string_view> OptimizerParamGroup::option_names() const {
  OptionNames all;
  visit_(options_, all);
  return all.names;
}

bool OptimizerParamGroup::has_option(std::string_view name) const {
  return std::ranges::count(option_names(), name) > 0;
}

double OptimizerParamGroup::access(std::string_view name, size_t index, const double* value) const {
  OptionAccess visitor(name, index, value);
  visit_(options_, visitor);
  if (!visitor.found())
    fail(Category::bad_argument, optimizer_, fmt::format("it has no option {}[{}]", name, index), {});
  return *visitor.found();
}

double OptimizerParamGroup::option(std::string_view name, size_t index) const {
  return access(name, index, nullptr);
}

void OptimizerParamGroup::set_option(std::string_view name, double value, size_t index) const {
  access(name, index, &value);
}

Tensor Optimizer::step(const LossClosure& closure, SourceLocation where) {
  Tensor loss;
  {
    EnableGradGuard enable_grad;
    loss = closure();
  }
  step(where);
  return loss;
}

void Optimizer::step_unless(const Tensor&, SourceLocation where) {
  fail(Category::unsupported, "step_unless", "this optimizer cannot skip a step", where);
}

void Optimizer::set_lr(double lr) {
  for (size_t g = 0; g < group_count(); ++g) param_group(g).set_lr(lr);
}

void Optimizer::zero_grad(bool set_to_none) { detail::zero_gradients(parameters(), set_to_none); }

void detail::zero_gradients(const Tensors& params, bool set_to_none) {
  NoGradGuard no_grad;
  for (const Tensor& param : params) {
    if (set_to_none)
      param.set_grad({});
    else if (param.grad().defined())
      param.grad().zero_();
  }
}

// ---- of an update rule ------------------------------------------------------------------------------------

namespace detail {

struct OptimizerData {
  const RuleInfo& rule;
  std::unique_ptr<Groups> groups;
  std::unordered_map<const TensorImpl*, ParamState> states = {};
  std::shared_ptr<const Places> places = {};  // of the groups, when they were last checked
  std::atomic<bool> is_stepping = false;

  ParamState& state_of(const Tensor& param) { return states.at(param.get()); }
  // Another tensor takes the place of a parameter, with its state.
  void replace(Tensor& param, const Tensor& next) {
    auto entry = states.extract(param.get());
    entry.key() = next.get();
    entry.mapped().param = next;
    states.insert(std::move(entry));
    param = next;
    places = nullptr;
  }
};

}  // namespace detail

namespace {

// Allows one step of an optimizer at a time: Error(bad_argument) for another one meanwhile.
class OnlyStep {
 public:
  OnlyStep(OptimizerData& data, SourceLocation where) : is_stepping_(data.is_stepping) {
    if (is_stepping_.exchange(true))
      fail(Category::bad_argument, data.rule.name,
           "another step of this optimizer is running. Hint: one thread at a time may use an optimizer",
           where);
  }
  ~OnlyStep() { is_stepping_ = false; }
  OnlyStep(const OnlyStep&) = delete;

 private:
  std::atomic<bool>& is_stepping_;
};

void check_all_options(const OptimizerData& data, SourceLocation where) {
  for (size_t g = 0; g < data.groups->size(); ++g) {
    detail::check_options(data.rule, data.groups->options(g), where);
    const UpdateMode mode = data.groups->mode(g);
    if (mode == UpdateMode()) continue;
    for (const Tensor& param : data.groups->params(g)) detail::check_mode(mode, param, data.rule.name, where);
  }
}

// What a recorded step depends on besides numbers: the structure, which optional states there are, and the mode. The step
// is that after `further` ones.
struct Form {
  uint32_t present;
  std::array<int64_t, detail::kMostStructure> structure;
  UpdateMode mode;
  int64_t replaced;  // tensors of the state: a recorded step uses those that it was recorded with
  friend bool operator==(const Form&, const Form&) = default;
};
Form form_of(const OptimizerData& data, size_t group, const ParamState& state, int64_t further) {
  const void* const options = data.groups->options(group);
  return {data.rule.op ? data.rule.present(options) : 0,
          std::to_array(state.next(data.rule, options, further).structure), data.groups->mode(group),
          state.replaced};
}

// Waits for a device.
bool is_set(const Tensor& found_inf) {
  if (!found_inf.defined()) return false;
  Emitter::Scope now(eager_runner());
  return found_inf.item<double>() != 0;
}
// After a run: a device that cannot be asked has failed, and the run with it.
bool was_skipped(const Tensor& found_inf) noexcept {
  try {
    return is_set(found_inf);
  } catch (const Exception&) {
    return true;
  }
}

// The inputs of the steps that a recorded function has read and not settled, of one parameter.
using Unsettled = std::vector<StepInputs>;

// The same while a function is recorded: symbols, whose values each run reads again. The run counts the step.
void give_recorded(const std::shared_ptr<OptimizerData>& data, size_t group, ParamState& state,
                   const std::shared_ptr<const Places>& places, const Tensor& found_inf,
                   std::span<Scalar> out) {
  const std::weak_ptr<OptimizerData> weak = data;
  const RuleInfo& rule = data->rule;
  const auto unsettled = std::make_shared<Unsettled>();
  const auto read = [weak, &rule, group, &state, unsettled](std::span<Scalar> now) {
    const std::shared_ptr<OptimizerData> lives = weak.lock();
    if (!lives)
      fail(Category::bad_argument, rule.name,
           "a recorded function steps an optimizer that no longer exists. Hint: make it outside the "
           "function, keep it "
           "as long as the function is called, and reset() the function before it steps another",
           {});
    void* const options = lives->groups->options(group);
    detail::check_options(rule, options, {});
    unsettled->reserve(unsettled->size() + 1);  // before a step is counted
    unsettled->push_back(state.read_ahead(rule, options));
    detail::give(rule, unsettled->back(), state, now);
  };
  const auto settle = [weak, &rule, &state, unsettled, found_inf](std::span<const Number>, bool was_made) {
    const StepInputs inputs = unsettled->back();
    unsettled->pop_back();
    if (const auto lives = weak.lock()) state.settle(rule, inputs, was_made && !was_skipped(found_inf));
  };
  const int64_t earlier = state.ahead;  // steps of the same recording
  const Form form = form_of(*data, group, state, earlier);
  const auto still_fits = [weak, group, &state, places, form, earlier] {
    const std::shared_ptr<OptimizerData> lives = weak.lock();
    if (!lives) return true;  // read() reports it
    if (places && !fits(*places, *lives->groups)) return false;
    return group < lives->groups->size() && form_of(*lives, group, state, state.ahead + earlier) == form;
  };
  read_live_numbers(out, {read, settle, still_fits});
}

// The same parameters and options, and state of its own.
std::shared_ptr<OptimizerData> copy_of(const OptimizerData& data) {
  NoGradGuard no_grad;
  auto copy = std::make_shared<OptimizerData>(data.rule, data.groups->copy());
  copy->states = data.states;
  copy->places = data.places;
  for (auto& [param, state] : copy->states) {
    state.ahead = 0;
    for (Tensor& s : state.states)
      if (s.defined()) s = clone(s);
    if (state.master.defined()) state.master = clone(state.master);
  }
  return copy;
}

}  // namespace

RuleOptimizer::RuleOptimizer(const RuleInfo& rule, std::unique_ptr<Groups> groups, SourceLocation where)
    : data_(std::make_shared<OptimizerData>(rule, std::move(groups))) {
  follow_groups(where);
}

RuleOptimizer::RuleOptimizer(const RuleOptimizer& other) : Optimizer(other), data_(copy_of(*other.data_)) {}

RuleOptimizer& RuleOptimizer::operator=(const RuleOptimizer& other) {
  data_ = copy_of(*other.data_);
  return *this;
}

RuleOptimizer::RuleOptimizer(RuleOptimizer&& other)
    : Optimizer(other),
      data_(std::exchange(other.data_,
                          std::make_shared<OptimizerData>(other.data_->rule, other.data_->groups->none()))) {}

RuleOptimizer& RuleOptimizer::operator=(RuleOptimizer&& other) {
  std::swap(data_, other.data_);
  other.data_ = std::make_shared<OptimizerData>(other.data_->rule, other.data_->groups->none());
  return *this;
}

Groups& RuleOptimizer::any_groups() const { return *data_->groups; }
size_t RuleOptimizer::group_count() const { return data_->groups->size(); }
Tensors RuleOptimizer::parameters() const { return all_params(*data_->groups); }

OptimizerParamGroup RuleOptimizer::param_group(size_t index) {
  if (index >= group_count())
    fail(Category::bad_argument, data_->rule.name, fmt::format("there is no parameter group {}", index), {});
  Groups& groups = *data_->groups;
  return {data_->rule.name, groups.params(index), groups.initial_lr(index), groups.options(index),
          data_->rule.visit};
}

void RuleOptimizer::remove_param_group(size_t index, SourceLocation where) {
  if (index >= group_count())
    fail(Category::bad_argument, data_->rule.name, fmt::format("there is no parameter group {}", index),
         where);
  data_->groups->remove(index);
}

void RuleOptimizer::follow_groups(SourceLocation where) {
  OptimizerData& data = *data_;
  if (data.places && fits(*data.places, *data.groups)) return;
  std::vector<bool> differentiable;
  for (size_t g = 0; g < data.groups->size(); ++g)
    differentiable.insert(differentiable.end(), data.groups->params(g).size(),
                          data.groups->mode(g).differentiable);
  detail::check_params(parameters(), data.rule.name, where, differentiable);
  check_all_options(data, where);
  auto places = std::make_shared<Places>();
  for (size_t g = 0; g < data.groups->size(); ++g) {
    const void* const options = data.groups->options(g);
    const UpdateMode mode = data.groups->mode(g);
    for (const Tensor& param : data.groups->params(g)) {
      places->push_back({g, param.get()});
      const auto [entry, is_new] = data.states.try_emplace(param.get(), data.rule, options, param);
      if (is_new && param.requires_grad()) entry->second.make(data.rule, options, mode);
    }
  }
  data.places = std::move(places);
}

void RuleOptimizer::step_unless(const Tensor& found_inf, SourceLocation where) {
  // What runs now can look first.
  if (Emitter::current().values() != Emitter::Values::of_function && is_set(found_inf)) return;
  update(Emitter::current().values() == Emitter::Values::of_function ? found_inf : Tensor(), where);
}

void RuleOptimizer::update(const Tensor& found_inf, SourceLocation where) {
  OptimizerData& data = *data_;
  const RuleInfo& rule = data.rule;
  const OnlyStep only(data, where);
  NoGradGuard no_grad;
  const retrograd::detail::AutocastOff no_casts;
  follow_groups(where);
  check_all_options(data, where);
  const bool is_recorded = Emitter::current().values() == Emitter::Values::of_function;
  detail::Updates updates(rule, found_inf, where);
  detail::UpdatesOneByOne alone(rule, found_inf, where);
  std::shared_ptr<const Places> places = data.places;  // a recorded step checks them once
  for (size_t g = 0; g < data.groups->size(); ++g)
    for (Tensor& param : data.groups->params(g)) {
      if (!param.grad().defined()) continue;
      const void* const options = data.groups->options(g);
      const UpdateMode mode = data.groups->mode(g);
      ParamState& state = data.state_of(param);
      state.make(rule, options, mode);  // options may require more than when it was made
      const StepInputs inputs = state.next(rule, options, is_recorded ? state.ahead : 0);
      const uint32_t present = rule.op ? rule.present(options) : 0;
      if (mode.differentiable) {
        data.replace(param, detail::step_differentiably(rule, state, inputs, present, where));
        continue;
      }
      Scalar given[LiveNumbers::kMost];
      const std::span<Scalar> used(given, rule.op ? rule.numbers : rule.factors);
      if (is_recorded)
        give_recorded(data_, g, state, std::exchange(places, nullptr), found_inf, used);
      else
        detail::give(rule, inputs, state, used);
      if (mode.is_wide(param) && mode.stochastic_rounding)
        alone.run(g, state, inputs, present, mode, used);
      else
        updates.add(g, state, inputs, present, mode, used);
    }
  updates.run();
}

StateDict RuleOptimizer::state_dict() const {
  StateDict out;
  const Tensors params = parameters();
  for (size_t i = 0; i < params.size(); ++i) {
    const auto entry = data_->states.find(params[i].get());
    if (entry != data_->states.end()) detail::save_state(out, i, data_->rule, entry->second);
  }
  Groups& groups = *data_->groups;
  for (size_t g = 0; g < groups.size(); ++g)
    detail::save_options(out, g, data_->rule, groups.options(g), groups.initial_lr(g));
  return out;
}

void RuleOptimizer::load_state_dict(const StateDict& state, SourceLocation where) {
  NoGradGuard no_grad;
  follow_groups(where);
  detail::SavedValues saved(state, "this optimizer", where);
  Groups& groups = *data_->groups;
  // Nothing changes before all has been found to fit.
  const std::unique_ptr<Groups> loaded_groups = groups.copy();
  for (size_t g = 0; g < groups.size(); ++g)
    detail::take_options(saved, g, data_->rule, loaded_groups->options(g), loaded_groups->initial_lr(g));
  const Tensors params = parameters();
  std::vector<detail::LoadedState> loaded;
  for (size_t i = 0; i < params.size(); ++i)
    loaded.push_back(detail::take_state(saved, i, data_->rule, data_->state_of(params[i])));
  saved.end();
  groups.assign(*loaded_groups);
  size_t next = 0;
  for (size_t g = 0; g < groups.size(); ++g)
    for (const Tensor& param : groups.params(g))
      detail::take_over(data_->state_of(param), loaded[next++], data_->rule, groups.options(g));
}

}  // namespace retrograd::optim
