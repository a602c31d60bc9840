// See optim/param_state.h.
#include "optim/param_state.h"

#include <unordered_set>

#include <fmt/format.h>

#include "engine/runner.h"
#include "ops/comparison.h"
#include "ops/copy.h"
#include "ops/creation.h"
#include "ops/shape_ops.h"
#include "ops/ternary.h"

namespace retrograd::inline v0::optim::detail {
namespace {

// The largest step count that a double represents exactly; numbers that depend on the step are computed in double.
constexpr int64_t kMostSteps = int64_t{1} << 53;

constexpr std::string_view kMaster = "master_param";

std::string key_of(size_t index, std::string_view name) { return fmt::format("{}.{}", index, name); }

Kept first_kept(const RuleInfo& rule, const void* options) {
  Kept kept{};
  for (size_t k = 0; k < rule.kept.size(); ++k) kept[k] = rule.kept_at_first(options, static_cast<int>(k));
  return kept;
}

StepInputs inputs_of(const RuleInfo& rule, const void* options, int64_t step, const Kept& kept) {
  StepInputs inputs;
  rule.read(options, inputs);
  inputs.numbers[rule.step] = static_cast<double>(step);
  std::copy_n(kept.begin(), rule.kept.size(), inputs.numbers + rule.step + 1);
  if (rule.variant) inputs.structure[rule.structure] = rule.variant(inputs);
  return inputs;
}

class OptionChecks final : public OptionVisitor {
 public:
  OptionChecks(std::string_view optimizer, SourceLocation where) : optimizer_(optimizer), where_(where) {}

  void numbers(std::string_view name, std::span<double> values, const ops::Domain& domain) override {
    for (const double v : values) {
      const bool is_low = domain.excludes_least ? !(v > domain.least) : !(v >= domain.least);
      const bool is_high = domain.excludes_most ? !(v < domain.most) : !(v <= domain.most);
      if (is_low || is_high)
        fail(Category::bad_argument, optimizer_,
             fmt::format("{} must be {}, it is {}", name, describe(domain), v), where_);
    }
  }
  void flag(std::string_view, bool&) override {}
  void count(std::string_view name, int64_t& value, const ops::Domain& domain) override {
    double number = static_cast<double>(value);
    numbers(name, {&number, 1}, domain);
  }

 private:
  static std::string describe(const ops::Domain& d) {
    if (d.least == -ops::kUnlimited) return "a number";
    if (d.most == ops::kUnlimited)
      return fmt::format("{} {}", d.excludes_least ? "above" : "at least", d.least);
    return fmt::format("in {}{}, {}{}", d.excludes_least ? '(' : '[', d.least, d.most,
                       d.excludes_most ? ')' : ']');
  }

  std::string_view optimizer_;
  SourceLocation where_;
};

}  // namespace

void ParamUpdate::set(const Tensor& target, const Tensor& value) const {
  if (changes) return void(changes->emplace_back(target, to(value, target.dtype())));
  target.copy_(found_inf.defined() ? where(ne(found_inf, 0), target, to(value, target.dtype())) : value);
}

ParamState::ParamState(const RuleInfo& rule, const void* options, const Tensor& param)
    : param(param), kept(first_kept(rule, options)), kept_ahead(kept) {}

void ParamState::make(const RuleInfo& rule, const void* options, const UpdateMode& mode) {
  const bool is_wide = mode.is_wide(param);
  const ScalarType dtype = is_wide ? kFloat32 : param.dtype();
  const auto make = [&] {
    for (size_t i = 0; i < rule.states.size(); ++i) {
      const ScalarType wanted = rule.state_dtype(i, param, dtype);
      if (!states[i].defined())
        states[i] = rule.make_state(options, i, param, wanted);
      else if (states[i].dtype() != wanted)
        states[i] = to(states[i], wanted), ++replaced;
    }
    const bool keeps_master = is_wide && mode.master_weights;
    if (keeps_master && !master.defined()) master = to(param, kFloat32);
    if (!keeps_master && master.defined()) master = {}, ++replaced;
  };
  if (mode.differentiable) {
    EnableGradGuard enable_grad;
    make();
  } else {
    const Emitter::Scope now(eager_runner());
    NoGradGuard no_grad;
    make();
  }
}

void check_mode(const UpdateMode& mode, const Tensor& param, std::string_view optimizer,
                SourceLocation where) {
  if (!mode.is_wide(param)) return;
  if (mode.differentiable + mode.master_weights + mode.stochastic_rounding > 1)
    fail(Category::bad_argument, optimizer,
         "of differentiable, master_weights and stochastic_rounding a group may have one", where);
  if (mode.stochastic_rounding && param.dtype() != kBFloat16)
    fail(Category::dtype_mismatch, optimizer,
         fmt::format("stochastic rounding gives bfloat16, a parameter is {}. Hint: master_weights",
                     describe(param)),
         where);
}

StepInputs ParamState::next(const RuleInfo& rule, const void* options, int64_t further) const {
  return inputs_of(rule, options, step + further + 1, kept);
}

StepInputs ParamState::read_ahead(const RuleInfo& rule, const void* options) {
  if (ahead == 0) kept_ahead = kept;
  const StepInputs inputs = inputs_of(rule, options, step + ++ahead, kept_ahead);
  rule.advance(inputs, kept_ahead.data());
  return inputs;
}

void ParamState::settle(const RuleInfo& rule, const StepInputs& inputs, bool was_made) {
  --ahead;
  if (was_made) advance(rule, inputs);
}

void ParamState::advance(const RuleInfo& rule, const StepInputs& inputs) {
  ++step;
  if (inputs.numbers[rule.step] <= kept_at) return;
  kept_at = inputs.numbers[rule.step];
  std::copy_n(inputs.numbers + rule.step + 1, rule.kept.size(), kept.begin());
  rule.advance(inputs, kept.data());
}

void check_params(const Tensors& params, std::string_view optimizer, SourceLocation where,
                  const std::vector<bool>& differentiable) {
  if (params.empty()) fail(Category::bad_argument, optimizer, "there is no parameter", where);
  std::unordered_set<const TensorImpl*> seen;
  for (size_t i = 0; i < params.size(); ++i) {
    const Tensor& p = params[i];
    if (!p.defined()) fail(Category::bad_argument, optimizer, "a parameter is undefined", where);
    if (!ops::may_be_updated(p.dtype()))
      fail(Category::dtype_mismatch, optimizer,
           fmt::format("parameters are float32, float64, bfloat16 or float16, one is {}", describe(p)),
           where);
    if (!p.is_leaf() && (differentiable.empty() || !differentiable[i]))
      fail(Category::bad_argument, optimizer, fmt::format("{} is not a leaf", describe(p)), where);
    if (!p.is_contiguous())
      fail(Category::bad_argument, optimizer,
           fmt::format("{} is not contiguous. Hint: clone it before it becomes a leaf", describe(p)), where);
    if (!seen.insert(p.get()).second)
      fail(Category::bad_argument, optimizer, fmt::format("{} is twice among the parameters", describe(p)),
           where);
  }
}

void check_options(const RuleInfo& rule, void* options, SourceLocation where) {
  OptionChecks checks(rule.name, where);
  rule.visit(options, checks);
  if (const char* reason = rule.refuse(options)) fail(Category::bad_argument, rule.name, reason, where);
}

void save_state(StateDict& out, size_t index, const RuleInfo& rule, const ParamState& state) {
  const bool is_filled = state.is_filled(rule);
  if (!is_filled && state.step == 0) return;  // as if it did not exist yet
  out.emplace(key_of(index, "step"), scalar_tensor(state.step, {kInt64}));
  if (state.master.defined()) out.emplace(key_of(index, kMaster), state.master);
  if (!is_filled) return;
  for (size_t i = 0; i < rule.states.size(); ++i)
    if (state.states[i].defined()) out.emplace(key_of(index, rule.states[i]), state.states[i]);
  for (size_t k = 0; k < rule.kept.size() && rule.saves_kept; ++k)
    out.emplace(key_of(index, rule.kept[k]), scalar_tensor(state.kept[k], {kFloat64}));
}

namespace {

std::string option_key(size_t group, std::string_view name) {
  return fmt::format("param_groups.{}.{}", group, name);
}

// Numbers as float64, with a dim if there are several; all else as int64.
class OptionSaver final : public OptionVisitor {
 public:
  OptionSaver(StateDict& out, size_t group) : out_(out), group_(group) {}
  void numbers(std::string_view name, std::span<double> values, const ops::Domain&) override {
    out_.emplace(option_key(group_, name), values.size() == 1 ? scalar_tensor(values[0], {kFloat64})
                                                              : list_of({values.begin(), values.end()}));
  }
  void flag(std::string_view name, bool& value) override { choice(name, value); }
  void count(std::string_view name, int64_t& value, const ops::Domain&) override { choice(name, value); }
  void choice(std::string_view name, int64_t value) override {
    out_.emplace(option_key(group_, name), scalar_tensor(value, {kInt64}));
  }

 private:
  StateDict& out_;
  size_t group_;
};

class OptionLoader final : public OptionVisitor {
 public:
  OptionLoader(SavedValues& saved, size_t group) : saved_(saved), group_(group) {}
  void numbers(std::string_view name, std::span<double> values, const ops::Domain&) override {
    const std::string key = option_key(group_, name);
    if (saved_.rest().contains(key)) std::ranges::copy(saved_.list(key, values.size()), values.begin());
  }
  void flag(std::string_view name, bool& value) override { set(name, value); }
  void count(std::string_view name, int64_t& value, const ops::Domain&) override { set(name, value); }
  void choice(std::string_view name, int64_t value) override {
    int64_t chosen = value;
    set(name, chosen);
    if (chosen != value)
      saved_.refuse(fmt::format("\"{}\" is {}, here it is {}", option_key(group_, name), chosen, value));
  }

 private:
  template <class T>
  void set(std::string_view name, T& value) {
    if (const auto found = saved_.find_number<int64_t>(option_key(group_, name)))
      value = static_cast<T>(*found);
  }

  SavedValues& saved_;
  size_t group_;
};

}  // namespace

void save_options(StateDict& out, size_t index, const RuleInfo& rule, void* options,
                  const std::optional<double>& initial_lr) {
  OptionSaver saver(out, index);
  rule.visit(options, saver);
  if (initial_lr) out.emplace(option_key(index, "initial_lr"), scalar_tensor(*initial_lr, {kFloat64}));
}

void take_options(SavedValues& saved, size_t index, const RuleInfo& rule, void* options,
                  std::optional<double>& initial_lr) {
  OptionLoader loader(saved, index);
  rule.visit(options, loader);
  if (const auto found = saved.find_number<double>(option_key(index, "initial_lr"))) initial_lr = found;
  check_options(rule, options, saved.where());
}

bool LoadedState::has_states() const { return std::ranges::any_of(states, &Tensor::defined); }

namespace {

// Like `wanted`, or like the parameter where the state does not exist yet.
Tensor find_like(SavedValues& saved, const std::string& key, const Tensor& wanted) {
  const Tensor value = saved.find(key);
  if (!value.defined()) return {};
  if (value.sizes() != wanted.sizes() || value.dtype() != wanted.dtype())
    fail(value.dtype() == wanted.dtype() ? Category::shape_mismatch : Category::dtype_mismatch,
         "load_state_dict",
         fmt::format("{} for \"{}\", which is {} here", describe(value), key, describe(wanted)),
         saved.where());
  return value.device() == wanted.device() ? clone(value) : value.to(wanted.device(), saved.where());
}

}  // namespace

LoadedState take_state(SavedValues& saved, size_t index, const RuleInfo& rule, const ParamState& now) {
  LoadedState loaded;
  for (size_t i = 0; i < rule.states.size(); ++i)
    loaded.states[i] =
        find_like(saved, key_of(index, rule.states[i]), now.states[i].defined() ? now.states[i] : now.param);
  if (now.master.defined()) loaded.master = find_like(saved, key_of(index, kMaster), now.master);
  const std::string key = key_of(index, "step");
  const std::optional<int64_t> step = saved.find_number<int64_t>(key);
  if (step && (*step < 0 || *step >= kMostSteps))
    saved.refuse(fmt::format("\"{}\" is {}: it counts steps", key, *step));
  const auto need = [&](std::string_view name) {
    saved.refuse(fmt::format("there is state of parameter {} but no \"{}\", which it depends on", index,
                             key_of(index, name)));
  };
  // A rule that saves no kept numbers is SGD, whose state depends on no count of steps.
  if (rule.saves_kept && !step && loaded.has_states()) need("step");
  loaded.step = step.value_or(0);
  if (rule.saves_kept && !rule.kept.empty() && (loaded.has_states() || loaded.step > 0)) {
    loaded.kept.emplace();
    for (size_t k = 0; k < rule.kept.size(); ++k) {
      const std::optional<double> number = saved.find_number<double>(key_of(index, rule.kept[k]));
      if (!number) need(rule.kept[k]);
      (*loaded.kept)[k] = *number;
    }
  }
  return loaded;
}

void take_over(ParamState& now, const LoadedState& loaded, const RuleInfo& rule, const void* options) {
  for (size_t i = 0; i < rule.states.size(); ++i) {
    Tensor& state = now.states[i];
    if (!state.defined())
      state = loaded.states[i];
    else if (loaded.states[i].defined())
      state.copy_(loaded.states[i]);
    else if (const Tensor first = rule.make_state(options, i, now.param, state.dtype()); first.defined())
      state.copy_(first);
    else
      state.zero_();  // an option that it belongs to is off
  }
  if (loaded.master.defined()) now.master.copy_(loaded.master);
  now.step = loaded.step;
  now.kept_at = static_cast<double>(loaded.step);
  now.kept = loaded.kept.value_or(first_kept(rule, options));
  rule.resume(loaded.has_states(), now.kept.data());
}

}  // namespace retrograd::optim::detail
