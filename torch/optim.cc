// See torch/optim.h.
#include "torch/optim.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "ops/float_ops.h"

namespace torch::optim {

using retrograd::Category;
using retrograd::SourceLocation;
using retrograd::optim::detail::OptionVisitor;
using retrograd::optim::detail::RuleInfo;

namespace {

// The options of a group, each as the address of its value.
class OptionPlaces final : public OptionVisitor {
 public:
  explicit OptionPlaces(OptimizerOptions& options) { options.rule()->visit(options.values(), *this); }
  void numbers(std::string_view, std::span<double> values, const retrograd::ops::Domain&) override {
    for (double& value : values) reals.push_back(&value);
  }
  void flag(std::string_view, bool& value) override { flags.push_back(&value); }
  void count(std::string_view, int64_t& value, const retrograd::ops::Domain&) override {
    counts.push_back(&value);
  }

  std::vector<double*> reals;
  std::vector<bool*> flags;
  std::vector<int64_t*> counts;
};

template <class T>
void inherit(const std::vector<T*>& options, const std::vector<T*>& initial,
             const std::vector<T*>& defaults) {
  for (size_t i = 0; i < options.size(); ++i)
    if (*options[i] == *initial[i]) *options[i] = *defaults[i];
}

// What stands at its initial value becomes that of the defaults.
void inherit(OptimizerOptions& options, OptimizerOptions& initial, OptimizerOptions& defaults) {
  const OptionPlaces mine(options), first(initial), others(defaults);
  inherit(mine.reals, first.reals, others.reals);
  inherit(mine.flags, first.flags, others.flags);
  inherit(mine.counts, first.counts, others.counts);
}

}  // namespace

[[noreturn]] static void refuse_rate() {
  retrograd::fail(Category::unsupported, "OptimizerOptions",
                  "a user's options have no get_lr() and set_lr(). Hint: override them");
}
double OptimizerOptions::get_lr() const { refuse_rate(); }
void OptimizerOptions::set_lr(double) { refuse_rate(); }

OptimizerOptions& OptimizerParamGroup::checked() const {
  if (!options_)
    retrograd::fail(Category::bad_argument, "OptimizerParamGroup",
                    "the group has no options before it is in an optimizer");
  return *options_;
}

// ---- Optimizer --------------------------------------------------------------------------------------------

Optimizer::Optimizer(const ParamGroups& groups, std::unique_ptr<OptimizerOptions> defaults)
    : defaults_(std::move(defaults)) {
  for (const OptimizerParamGroup& group : groups) param_groups_.push_back(completed(group));
}

// The group with options: its own, completed by the defaults.
OptimizerParamGroup Optimizer::completed(const OptimizerParamGroup& group) const {
  OptimizerParamGroup made = group;
  if (!made.has_options()) {
    made.set_options(defaults_->clone());
  } else if (made.options().rule() != defaults_->rule()) {
    retrograd::fail(Category::bad_argument, "add_param_group",
                    "the options of a group are those of another optimizer");
  } else if (made.options().rule()) {
    inherit(made.options(), *made.options().initial(), *defaults_);
  }
  return made;
}

void Optimizer::add_param_group(const OptimizerParamGroup& group) {
  param_groups_->push_back(completed(group));
  try {
    follow_groups();
  } catch (...) {
    param_groups_->pop_back();
    throw;
  }
}

void Optimizer::zero_grad(bool set_to_none) {
  for (const OptimizerParamGroup& group : param_groups_)
    retrograd::optim::detail::zero_gradients(group.params(), set_to_none);
}

size_t Optimizer::size() const {
  size_t count = 0;
  for (const OptimizerParamGroup& group : param_groups_) count += group.params().size();
  return count;
}

retrograd::optim::Optimizer& Optimizer::impl() const {
  retrograd::fail(
      Category::unsupported, "Optimizer",
      "an optimizer of the user is none of the library's; it has param_groups(), and its own state");
}

// ---- states of update rules -------------------------------------------------------------------------------

namespace detail {

const Tensor& RuleParamState::tensor(std::string_view name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? none_ : found->second;
}

bool RuleParamState::read(const retrograd::StateDict& state, const std::string& prefix) {
  tensors_.clear();
  for (auto entry = state.lower_bound(prefix); entry != state.end() && entry->first.starts_with(prefix);
       ++entry)
    tensors_.emplace(entry->first.substr(prefix.size()), entry->second);
  const auto step = tensors_.find("step");
  if (step == tensors_.end()) return false;
  step_ = step->second.item<int64_t>();
  tensors_.erase(step);
  return true;
}

bool operator==(const RuleParamState& a, const RuleParamState& b) {
  const auto are_equal = [](const auto& x, const auto& y) {
    return x.first == y.first && retrograd::equal(x.second, y.second);
  };
  return a.step_ == b.step_ && std::ranges::equal(a.tensors_, b.tensors_, are_equal);
}

}  // namespace detail

// ---- of an update rule ------------------------------------------------------------------------------------

namespace detail {
namespace {

// The groups of a torch::optim::Optimizer, as the library sees groups.
class SharedGroups final : public retrograd::optim::detail::Groups {
 public:
  SharedGroups(const RuleInfo& rule, std::shared_ptr<ParamGroups> list)
      : rule_(rule), list_(std::move(list)) {}
  size_t size() const override { return list_->size(); }
  retrograd::Tensors& params(size_t group) override { return list_->at(group).params(); }
  /// Error(bad_argument) for options of another optimizer, which a user may have set.
  void* options(size_t group) override {
    OptimizerOptions& options = list_->at(group).options();
    if (options.rule() != &rule_)
      retrograd::fail(Category::bad_argument, rule_.name, "a group has the options of another optimizer");
    return options.values();
  }
  std::optional<double>& initial_lr(size_t group) override { return list_->at(group).initial_lr; }
  retrograd::optim::detail::UpdateMode mode(size_t) const override { return {}; }
  std::unique_ptr<retrograd::optim::detail::Groups> copy() const override {
    return std::make_unique<SharedGroups>(rule_, std::make_shared<ParamGroups>(*list_));
  }
  std::unique_ptr<retrograd::optim::detail::Groups> none() const override {
    return std::make_unique<SharedGroups>(rule_, std::make_shared<ParamGroups>());
  }
  void remove(size_t group) override { list_->erase(list_->begin() + static_cast<ptrdiff_t>(group)); }
  void assign(const retrograd::optim::detail::Groups& other) override {
    *list_ = ParamGroups(*static_cast<const SharedGroups&>(other).list_);
  }

 private:
  const RuleInfo& rule_;
  std::shared_ptr<ParamGroups> list_;
};

}  // namespace

class RuleOptimizer::Impl final : public retrograd::optim::RuleOptimizer {
 public:
  Impl(const RuleInfo& rule, std::shared_ptr<ParamGroups> groups)
      : RuleOptimizer(rule, std::make_unique<SharedGroups>(rule, std::move(groups)), SourceLocation()) {}
  using retrograd::optim::RuleOptimizer::follow_groups;

  ParamStates shown;  // by the last call of state()
};

RuleOptimizer::RuleOptimizer(const ParamGroups& groups, std::unique_ptr<OptimizerOptions> defaults)
    : Optimizer(groups, std::move(defaults)),
      impl_(std::make_shared<Impl>(*defaults_->rule(), param_groups_.list())) {}

retrograd::optim::Optimizer& RuleOptimizer::impl() const { return *impl_; }
void RuleOptimizer::follow_groups() { impl_->follow_groups(SourceLocation()); }

// The states that were shown before stay where they are: the program may refer to them.
const ParamStates& RuleOptimizer::read_state() const {
  const retrograd::StateDict all = impl_->state_dict();
  const retrograd::Tensors params = impl_->parameters();
  ParamStates states;
  for (size_t i = 0; i < params.size(); ++i) {
    auto entry = impl_->shown.extract(params[i].get());
    std::unique_ptr<OptimizerParamState> state =
        entry ? std::move(entry.mapped()) : std::unique_ptr<OptimizerParamState>(defaults_->param_state());
    if (static_cast<RuleParamState&>(*state).read(all, fmt::format("{}.", i)))
      states.emplace(params[i].get(), std::move(state));
  }
  return impl_->shown = std::move(states);
}

Tensor RuleOptimizer::step(LossClosure closure) {
  if (closure) return impl_->step(closure, SourceLocation());
  impl_->step(SourceLocation());
  return {};
}

template <class Self, class Rule>
const RuleInfo* RuleOptions<Self, Rule>::rule() const {
  return &retrograd::optim::detail::rule_info<Rule>;
}
template <class Self, class Rule>
std::unique_ptr<OptimizerOptions> RuleOptions<Self, Rule>::initial() const {
  return std::make_unique<Self>();
}
template <class Self, class Rule>
std::unique_ptr<RuleParamState> RuleOptions<Self, Rule>::param_state() const {
  return std::make_unique<typename Self::ParamState>();
}

bool are_same_options(const RuleInfo& rule, const void* a, const void* b) {
  retrograd::optim::detail::StepInputs of_a, of_b;
  rule.read(a, of_a);
  rule.read(b, of_b);
  return std::equal(of_a.numbers, of_a.numbers + rule.step, of_b.numbers) &&
         std::equal(of_a.structure, of_a.structure + rule.structure, of_b.structure);
}

#define RG_OPTIONS(NAME, RULE) template class RuleOptions<NAME##Options, RULE>;
RG_OPTIONS(SGD, retrograd::ops::SGD)
RG_OPTIONS(Adam, retrograd::ops::Adam)
RG_OPTIONS(AdamW, retrograd::ops::AdamW)
RG_OPTIONS(Adagrad, retrograd::ops::Adagrad)
RG_OPTIONS(RMSprop, retrograd::ops::RMSprop)
RG_OPTIONS(Adamax, retrograd::ops::Adamax)
RG_OPTIONS(NAdam, retrograd::ops::NAdam)
RG_OPTIONS(RAdam, retrograd::ops::RAdam)
RG_OPTIONS(Adadelta, retrograd::ops::Adadelta)
RG_OPTIONS(Rprop, retrograd::ops::Rprop)
RG_OPTIONS(ASGD, retrograd::ops::ASGD)
RG_OPTIONS(Lion, retrograd::ops::Lion)
RG_OPTIONS(Muon, retrograd::optim::MuonRule)
#undef RG_OPTIONS

}  // namespace detail

// ---- LBFGS ------------------------------------------------------------------------------------------------

using retrograd::optim::LineSearchFn;

LBFGSOptions& LBFGSOptions::line_search_fn(const std::optional<std::string>& name) {
  if (name && *name != "strong_wolfe")
    retrograd::fail(Category::bad_argument, "LBFGS",
                    fmt::format("there is no line search \"{}\"; there is \"strong_wolfe\"", *name));
  data().line_search_fn = name ? LineSearchFn::strong_wolfe : LineSearchFn::none;
  return *this;
}

std::optional<std::string> LBFGSOptions::line_search_fn() const {
  if (data().line_search_fn == LineSearchFn::none) return {};
  return "strong_wolfe";
}

bool operator==(const LBFGSOptions& a, const LBFGSOptions& b) {
  const auto parts = [](const LBFGSOptions& o) {
    const auto& d = o.data();
    return std::tuple(d.lr, d.max_iter, d.max_eval, d.tolerance_grad, d.tolerance_change, d.history_size,
                      d.line_search_fn);
  };
  return parts(a) == parts(b);
}

LBFGS::LBFGS(const ParamGroups& groups, LBFGSOptions defaults)
    : Optimizer(groups, std::make_unique<LBFGSOptions>(std::move(defaults))) {
  follow_groups();
  const auto& options = static_cast<const LBFGSOptions&>(param_groups_->front().options());
  impl_ = std::make_shared<retrograd::optim::LBFGS>(parameters(), options.data(), SourceLocation());
  impl();
}

void LBFGS::follow_groups() {
  if (param_groups_->size() != 1)
    retrograd::fail(Category::bad_argument, "LBFGS",
                    fmt::format("it has one parameter group, not {}", param_groups_->size()));
}

// With the options of the group, which are its own from here on: whoever changes one changes the other.
retrograd::optim::Optimizer& LBFGS::impl() const {
  auto* const options = dynamic_cast<LBFGSOptions*>(&param_groups_->front().options());
  if (!options)
    retrograd::fail(Category::bad_argument, "LBFGS", "the group has the options of another optimizer");
  if (options->data_ != &impl_->options) {
    impl_->options = options->data();
    options->data_ = &impl_->options;
  }
  return *impl_;
}

const ParamStates& LBFGS::read_state() const {
  retrograd::fail(Category::unsupported, "LBFGS", "it has no state(). Hint: state_dict()");
}

Tensor LBFGS::step(LossClosure closure) {
  if (closure) return impl().step(closure, SourceLocation());
  impl().step(SourceLocation());
  return {};
}

}  // namespace torch::optim
