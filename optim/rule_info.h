// RuleInfo: an update rule as the code that all optimizers share sees it, without its type.
//
// A rule is elementwise, with an op and kernels (ops/optimizers/rule.h), or composed: a struct with Options, state and an
// update() that is made of tensor functions (optim/adafactor.h is an example). Options are passed as `void*`; they are
// those of the rule. Options that are numbers may change from step to step; all others are structure: a recorded step
// that finds them changed is recorded again. A composed rule whose steps are not all made of the same operations has a
// variant() that tells them apart by the number of the step; it is structure as well.
#pragma once

#include <functional>

#include "engine/recording.h"
#include "ops/creation.h"
#include "ops/optimizer_steps.h"
#include "ops/shape_ops.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::optim::detail {

inline constexpr size_t kMostStates = 10, kMostKept = 2, kMostStructure = 8;
using Kept = std::array<double, kMostKept>;

/// Is called for each option: a number or a list of numbers, a flag, a count, or a choice, which is an enum.
class OptionVisitor {
 public:
  virtual void numbers(std::string_view name, std::span<double> values, const ops::Domain& domain) = 0;
  virtual void flag(std::string_view name, bool& value) = 0;
  virtual void count(std::string_view name, int64_t& value, const ops::Domain& domain) = 0;
  virtual void choice(std::string_view /*name*/, int64_t /*value*/) {}

 protected:
  ~OptionVisitor() = default;
};

/// How the parameters of a group are updated: see ParamGroup (optim/optimizer.h).
struct UpdateMode {
  bool differentiable = false, master_weights = false, stochastic_rounding = false;
  friend bool operator==(const UpdateMode&, const UpdateMode&) = default;

  /// Whether the step of a parameter is that of float32 values.
  bool is_wide(const Tensor& param) const {
    return (master_weights || stochastic_rounding) && element_size(param.dtype()) == 2;
  }
};

/// The attributes of a parameter's step: the options that are numbers, the step, the kept numbers; and the structure,
/// after which a rule with variants has that of the step.
struct StepInputs {
  double numbers[LiveNumbers::kMost];
  int64_t structure[kMostStructure] = {};
};

/// A parameter whose step a composed rule computes: it reads everything, then calls set() for what it changes, then done().
struct ParamUpdate {
  Tensor param, grad;
  std::array<Tensor, kMostStates> states;
  std::array<Scalar, LiveNumbers::kMost> factors;
  const int64_t* structure;
  size_t group;      // of the optimizer
  Tensor found_inf;  // where it is not 0, nothing may change; undefined: there is none
  // Of a differentiable step: what set() was called with, and nothing is written.
  std::vector<std::pair<Tensor, Tensor>>* changes;
  // Counts the step; empty while a function is recorded, whose runs count.
  std::function<void()> count;

  /// Writes a parameter or a state.
  void set(const Tensor& target, const Tensor& value) const;
  void done() const {
    if (count) count();
  }
};

struct RuleInfo {
  std::string_view name;
  std::span<const std::string_view> states;  // their names
  std::span<const std::string_view> kept;    // names of the numbers that a parameter keeps
  bool saves_kept;
  size_t numbers, structure, step;  // how many, and the place of the step among the numbers

  void (*visit)(void* options, OptionVisitor&);
  /// The numbers before `step`, and the structure.
  void (*read)(const void* options, StepInputs& to);
  const char* (*refuse)(const void* options);
  /// The dtype of a state, for a step in `dtype`.
  ScalarType (*state_dtype)(size_t state, const Tensor& param, ScalarType dtype);
  /// A new state of a dtype; undefined where the parameter needs none.
  Tensor (*make_state)(const void* options, size_t state, const Tensor& param, ScalarType dtype);
  double (*kept_at_first)(const void* options, int number);
  /// `kept` after a step with these inputs.
  void (*advance)(const StepInputs& inputs, double* kept);
  bool (*is_filled)(int64_t steps, const double* kept);
  void (*resume)(bool has_states, double* kept);

  // Elementwise rules: state i is operand i + 1 of the op, and numbers and structure are its attributes.
  const OpInfo* op;
  uint32_t (*present)(const void* options);

  // Composed rules: what a step computes once on the host, and the step of some parameters. `variant` is null where all
  // steps are made of the same operations.
  size_t factors;
  int64_t (*variant)(const StepInputs& inputs);
  void (*factors_of)(const StepInputs& inputs, const Tensor& param, double* factors);
  void (*update)(std::span<const ParamUpdate> updates, SourceLocation where);
};

/// The names in a list like "a, b".
template <size_t Count>
constexpr std::array<std::string_view, Count> names_in(std::string_view list) {
  std::array<std::string_view, Count> names;
  size_t k = 0;
  ops::for_each_item(list, [&](std::string_view name) { names[k++] = name; });
  return names;
}
constexpr size_t count_names(std::string_view list) {
  size_t n = 0;
  ops::for_each_item(list, [&](std::string_view) { ++n; });
  return n;
}
/// "exp_avg, exp_avg_sq" of "param, exp_avg, exp_avg_sq, grad".
constexpr std::string_view states_in(std::string_view operands) {
  const size_t begin = operands.find(", ") + 2, end = operands.rfind(", ");
  return begin < end ? operands.substr(begin, end - begin) : std::string_view();
}

template <class Rule>
inline constexpr bool is_elementwise = requires {
  Rule::op_name;
};

template <class Rule>
struct RuleNames {
  static constexpr std::string_view state_list = [] {
    if constexpr (is_elementwise<Rule>)
      return states_in(Rule::operands);
    else
      return Rule::states;
  }();
  static constexpr auto states = names_in<count_names(state_list)>(state_list);
  static constexpr auto kept = names_in<count_names(Rule::kept)>(Rule::kept);
};

template <class Rule>
void visit_options(void* options, OptionVisitor& visitor) {
  static_cast<typename Rule::Options*>(options)->visit(
      [&]<class T>(std::string_view name, T& option, const auto&... domain) {
        if constexpr (std::is_same_v<T, bool>)
          visitor.flag(name, option);
        else if constexpr (std::is_same_v<T, int64_t>)
          visitor.count(name, option, domain...);
        else if constexpr (std::is_enum_v<T>)
          visitor.choice(name, static_cast<int64_t>(option));
        else if constexpr (std::is_same_v<T, double>)
          visitor.numbers(name, {&option, 1}, domain...);
        else
          visitor.numbers(name, option, domain...);
      });
}

template <class Rule>
void read_options(const void* options, StepInputs& to) {
  typename Rule::Options copy = *static_cast<const typename Rule::Options*>(options);
  double* numbers = to.numbers;
  int64_t* structure = to.structure;
  copy.visit([&]<class T>(std::string_view, const T& option, auto&&...) {
    if constexpr (ops::is_structure<T>)
      *structure++ = static_cast<int64_t>(option);
    else if constexpr (std::is_same_v<T, double>)
      *numbers++ = option;
    else
      numbers = std::ranges::copy(option, numbers).out;
  });
}

/// The inverse of read_options().
template <class Rule>
typename Rule::Options options_of(const StepInputs& from) {
  return ops::options_from<typename Rule::Options>(from.numbers, from.structure);
}

template <class Rule>
Tensor make_full_state(const void* options, size_t state, const Tensor& param, ScalarType dtype) {
  const auto& o = *static_cast<const typename Rule::Options*>(options);
  const int operand = static_cast<int>(state) + 1;
  if ((Rule::optional & ~Rule::present(o)) >> operand & 1) return {};
  if (Rule::begins_at_param(operand)) return param.dtype() == dtype ? clone(param) : to(param, dtype);
  return full(param.sizes(), Rule::initial(o, operand), {dtype, param.device()});
}

template <class Rule>
inline constexpr bool has_variants = requires(const typename Rule::Options& options) {
  Rule::variant(options, 1.0);
};

template <class Rule>
constexpr RuleInfo make_rule_info() {
  using Options = typename Rule::Options;
  using Names = ops::StepNames<Rule>;
  static_assert(RuleNames<Rule>::states.size() <= kMostStates && RuleNames<Rule>::kept.size() <= kMostKept);
  static_assert(Names::numbers <= LiveNumbers::kMost &&
                Names::structure + has_variants<Rule> <= kMostStructure);
  RuleInfo info{};
  info.name = Rule::name;
  info.states = RuleNames<Rule>::states;
  info.kept = RuleNames<Rule>::kept;
  info.saves_kept = Rule::saves_kept;
  info.numbers = Names::numbers, info.structure = Names::structure, info.step = Names::step;
  info.visit = visit_options<Rule>;
  info.read = read_options<Rule>;
  info.refuse = [](const void* o) { return Rule::refuse(*static_cast<const Options*>(o)); };
  info.kept_at_first = [](const void* o, int k) {
    return Rule::kept_at_first(*static_cast<const Options*>(o), k);
  };
  info.advance = [](const StepInputs& inputs, double* kept) {
    Rule::advance(options_of<Rule>(inputs), inputs.numbers[Names::step], kept);
  };
  if constexpr (requires { &Rule::state_dtype; })
    info.state_dtype = Rule::state_dtype;
  else
    info.state_dtype = [](size_t, const Tensor&, ScalarType dtype) { return dtype; };
  info.is_filled = [](int64_t steps, const double* kept) { return Rule::is_filled(steps, kept); };
  info.resume = [](bool has_states, double* kept) { Rule::resume(has_states, kept); };
  if constexpr (is_elementwise<Rule>) {
    info.op = &ops::info<ops::StepOf<Rule>>;
    info.present = [](const void* o) { return Rule::present(*static_cast<const Options*>(o)); };
    info.make_state = make_full_state<Rule>;
  } else {
    static_assert(Rule::factors <= LiveNumbers::kMost);
    info.factors = Rule::factors;
    info.factors_of = [](const StepInputs& inputs, const Tensor& param, double* factors) {
      Rule::factors_of(options_of<Rule>(inputs), inputs.numbers[Names::step], param, factors);
    };
    info.update = Rule::update;
    if constexpr (has_variants<Rule>)
      info.variant = [](const StepInputs& inputs) {
        return Rule::variant(options_of<Rule>(inputs), inputs.numbers[Names::step]);
      };
    info.make_state = [](const void* o, size_t state, const Tensor& param, ScalarType dtype) {
      return Rule::make_state(*static_cast<const Options*>(o), state, param, dtype);
    };
  }
  return info;
}

template <class Rule>
inline constexpr RuleInfo rule_info = make_rule_info<Rule>();

}  // namespace retrograd::optim::detail
#pragma GCC visibility pop
