// Steps of optimizers as ops: new values of a parameter and of the optimizer's state, from the old ones and a gradient.
//
//   StepOf<Rule>   the op of an update rule (ops/optimizers/rule.h). Its attributes are the rule's options, the number of
//                  the step, and the numbers that the parameter carries from step to step
//   UpdateList     steps of many parameters, which are computed together
//
// The operands are those of the rule, and two that may be absent: `master` before the gradient, and found_inf as the last.
// Result k is the new value of operand k, and a kernel may compute it in that operand's memory (Trait::updates): so
// optim/ steps in place, and the plan of a recorded step does, too. Where found_inf, a number, is not 0 nothing is
// updated (optim/grad_scaler.h). All numbers are Scalars: inputs of a recorded step.
// In 16 bits an update is computed in float32 and each new value rounded once, as in PyTorch's fused optimizers. With
// `master`, the parameter's values in float32, the state is float32, too, and only the parameter is rounded. An element of
// `master` counts only while it rounds to the parameter's: if anything else has written the parameter, that holds.
//
// Limits: float32, float64, bfloat16 and float16; row-major.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>

#include "ops/op.h"
#include "ops/optimizers/rules.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::ops {

/// The dtypes that a parameter may have.
inline bool may_be_updated(ScalarType dtype) {
  return dtype == kFloat32 || dtype == kFloat64 || dtype == kBFloat16 || dtype == kFloat16;
}

/// A short text that is made at compile time.
template <size_t Capacity>
struct FixedText {
  char chars[Capacity] = {};
  size_t size = 0;
  constexpr FixedText& operator+=(std::string_view text) {
    for (const char c : text) chars[size++] = c;
    return *this;
  }
  constexpr std::string_view view() const { return {chars, size}; }
};

/// Options that are no numbers.
template <class T>
inline constexpr bool is_structure = std::is_integral_v<T> || std::is_enum_v<T>;

/// Calls f(item) for the items of "a, b, c".
template <class F>
constexpr void for_each_item(std::string_view list, F&& f) {
  while (!list.empty()) {
    const size_t end = std::min(list.find(", "), list.size());
    f(list.substr(0, end));
    list.remove_prefix(std::min(end + 2, list.size()));
  }
}

/// The attributes of a rule's step. Numbers: the options that are numbers, in the order of visit(), "betas" as beta1 and
/// beta2; then step; then those that the rule keeps. Structure: all other options, which are flags if the rule has an op.
template <class Rule>
struct StepNames {
  using Name = FixedText<32>;
  struct Counts {
    int numbers = 0, structure = 0, kept = 0;
  };
  static constexpr Counts counts = [] {
    Counts counts;
    typename Rule::Options options;
    options.visit([&]<class T>(std::string_view, T& option, auto...) {
      if constexpr (is_structure<T>)
        ++counts.structure;
      else
        counts.numbers += static_cast<int>(sizeof(option) / sizeof(double));
    });
    for_each_item(Rule::kept, [&](std::string_view) { ++counts.kept; });
    counts.numbers += 1 + counts.kept;
    return counts;
  }();
  static constexpr int numbers = counts.numbers, structure = counts.structure, kept = counts.kept;
  static constexpr int step = numbers - kept - 1;  // the place of the step among the numbers

  struct All {
    std::array<Name, numbers> of_numbers;
    std::array<Name, structure + 1> of_flags;
  };
  static constexpr All names = [] {
    All all{};
    int n = 0, f = 0;
    typename Rule::Options options;
    options.visit([&]<class T>(std::string_view name, T&, auto...) {
      if constexpr (is_structure<T>)
        all.of_flags[f++] += name;
      else if constexpr (std::is_same_v<T, double>)
        all.of_numbers[n++] += name;
      else
        for (size_t i = 0; i < std::tuple_size_v<T>; ++i) {
          const char digit = static_cast<char>('1' + i);
          (all.of_numbers[n++] += name.substr(0, name.size() - 1)) += std::string_view(&digit, 1);
        }
    });
    all.of_numbers[n++] += "step";
    for_each_item(Rule::kept, [&](std::string_view name) { all.of_numbers[n++] += name; });
    return all;
  }();

  static constexpr FixedText<128> operands = [] {
    FixedText<128> text;
    const size_t grad = Rule::operands.rfind(", ");
    (text += Rule::operands.substr(0, grad)) += ", master";
    return (text += Rule::operands.substr(grad)) += ", found_inf";
  }();
  /// For docs/ops.md: any numbers.
  static constexpr FixedText<512> example = [] {
    FixedText<512> text;
    for (int k = 0; k + 1 < Rule::inputs; ++k) text += "f32[3], ";
    text += "none, f32[3], f32[] {";
    for (int i = 0; i < numbers; ++i) {
      if (i > 0) text += ", ";
      (text += names.of_numbers[i].view()) += "=0.5";
    }
    for (int i = 0; i < structure; ++i) ((text += ", ") += names.of_flags[i].view()) += "=false";
    text += "} : ";
    for (int k = 0; k + 1 < Rule::inputs; ++k) text += k == 0 ? "f32[3]" : ", f32[3]";
    return text;
  }();
};

/// Common properties of steps. All operands have the parameter's shape, but found_inf none, and its dtype, with these
/// exceptions: found_inf is float32, the gradient of a float32 parameter may have 16 bits, and with `master`, which is
/// float32, the parameter and the gradient have 16 bits and the state is float32.
struct UpdateOp {
  static constexpr uint32_t traits = Trait::pure | Trait::updates;
  static constexpr int8_t outputs = -1;
  static constexpr std::string_view no_derivative = "a step of an optimizer is not differentiated";
  static void infer(const Call& call, TensorImpl* const* outputs);
};

/// The op of a rule: operands as the rule lists them, `master` before the last of these, found_inf after it.
template <class Rule>
struct StepOf : UpdateOp {
  using Names = StepNames<Rule>;
  struct Attrs {
    std::array<Scalar, Names::numbers> numbers;
    std::array<bool, Names::structure> flags;
    void visit(AttrVisitor& v) {
      for (size_t i = 0; i < numbers.size(); ++i) v.field(Names::names.of_numbers[i].view(), numbers[i]);
      for (size_t i = 0; i < flags.size(); ++i) v.field(Names::names.of_flags[i].view(), flags[i]);
    }
  };
  static constexpr std::string_view name = Rule::op_name, doc = Rule::doc;
  static constexpr std::string_view operands = Names::operands.view(), example = Names::example.view();
  static constexpr int8_t arity = Rule::inputs + 2;
  static constexpr uint8_t optional = Rule::optional | 1 << (Rule::inputs - 1) | 1 << (Rule::inputs + 1);
  static_assert(arity <= 8);
};

/// Options of a rule from their numbers and all else, in the order of visit().
template <class Options, class Structure>
Options options_from(const double* numbers, const Structure* structure) {
  Options options;
  options.visit([&]<class T>(std::string_view, T& option, auto...) {
    if constexpr (is_structure<T>)
      option = static_cast<T>(*structure++);
    else if constexpr (std::is_same_v<T, double>)
      option = *numbers++;
    else
      for (double& value : option) value = *numbers++;
  });
  return options;
}

/// What the formula of a step needs of its attributes.
template <class Rule>
typename Rule::Formula::Factors factors_of(const typename StepOf<Rule>::Attrs& attrs) {
  using Names = StepNames<Rule>;
  double numbers[Names::numbers];
  for (size_t i = 0; i < attrs.numbers.size(); ++i) numbers[i] = attrs.numbers[i].to_double();
  return typename Rule::Formula::Factors(options_from<typename Rule::Options>(numbers, attrs.flags.data()),
                                         Progress{numbers[Names::step], numbers + Names::step + 1});
}

template <class Rules>
struct StepsOf;
template <class... Rule>
struct StepsOf<RuleList<Rule...>> {
  using Type = OpList<StepOf<Rule>...>;
};
using OptimizerOps = StepsOf<OptimizerRules>::Type;

/// Steps of one rule: the values of the first tensors of each are replaced, namely of those before the gradient. While a function is recorded each is a node. Otherwise consecutive updates with the same
/// numbers are computed in one pass over the memory of all of them, with results as if they were computed in order.
///
/// The kernel gets them as one call: the operands of all steps, concatenated, the results likewise, and one set of
/// attributes.
class UpdateList {
 public:
  /// `op` of StepOf. `found_inf` of all updates; undefined: there is none.
  UpdateList(const OpInfo& op, SourceLocation where, Tensor found_inf = {});
  UpdateList(const UpdateList&) = delete;

  /// The operands of the rule, which are kept alive; the attributes' numbers and flags.
  void add(std::span<const Tensor> operands, std::span<const Scalar> numbers, std::span<const bool> flags,
           const Tensor& master = {});
  /// Computes the added updates, once. Calls done(number) for each that has been computed, in the order in which they
  /// were added; not while a function is recorded. An error says how many were done before it.
  void run(const std::function<void(size_t)>& done = {});

 private:
  std::span<const Tensor> operands(size_t begin, size_t end) const {
    return {operands_.data() + begin * arity_, (end - begin) * arity_};
  }
  std::byte* attrs(size_t update) { return attrs_.data() + update * op_.attrs_size; }
  bool may_join(size_t a, size_t b);
  bool is_independent(std::span<const Tensor> operands) const;
  void record(size_t update);
  void launch(size_t begin, size_t end);

  const OpInfo& op_;
  const size_t arity_;
  const SourceLocation where_;
  const bool is_recorded_;
  const Tensor found_inf_;
  size_t numbers_ = 0;
  Tensors operands_;              // of all updates
  std::vector<std::byte> attrs_;  // of each, op_.attrs_size bytes: numbers, then flags
};

}  // namespace retrograd::ops
#pragma GCC visibility pop
