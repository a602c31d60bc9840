// What the update rules of optimizers in this folder consist of. A rule is one struct, read by everything that needs a
// part of it: the optimizer (optim/optimizer.h), the op of a step (ops/optimizer_steps.h), and kernels of every device.
//
//   name, op_name, doc, operands   of the op: "param, exp_avg, exp_avg_sq, grad". What is between param and grad is the
//                       state, under PyTorch's names
//   Options             PyTorch's options, with a visit() that names them and their domains
//   present(options)    which of the optional operands there are; bit k is operand k, as in `optional`
//   initial(options, k) what operand k, a state, is filled with at first
//   kept                names of numbers that each parameter carries from step to step; advance() computes them anew
//   Factors             everything that a step computes once rather than for each element. Plain doubles and bools
//   step                the step of one element. V is a register of elements in kernel files of the CPU, one number on a
//                       device
//   Formula             the struct that has Factors and step: rules that differ in their options only share one
//
// step: x has an element of each operand, y of each result, in their order. Result k is the new value of operand k, and
// the gradient is the last operand. Elements of an absent operand are neither read nor written.
//
// To add an optimizer, write its rule in a file here, name it in rules.h, and its class in optim/optimizers.h.
#pragma once

#ifdef RG_FORMULAS
#include "ops/formulas.h"
#endif
#include <array>
#include <cmath>
#include <limits>
#include <string_view>

#include "ops/math.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::ops {

/// The values that an option may have: from least to most, without the ends that are excluded.
struct Domain {
  double least, most;
  bool excludes_least = false, excludes_most = false;
};
inline constexpr double kUnlimited = std::numeric_limits<double>::infinity();
inline constexpr Domain kNotNegative{0, kUnlimited}, kBelowOne{0, 1, false, true};

/// Which operands there are: bit k is operand k.
struct Present {
  uint32_t bits;
  RG_HD constexpr bool operator[](int k) const { return bits >> k & 1; }
};

/// A bool without padding beside doubles: the bytes of Factors are compared.
using Switch = int64_t;

/// Of a parameter, before a step: `step` counts from 1.
struct Progress {
  double step;
  const double* kept;
};

/// The parts that most rules do without.
struct OptimizerRule {
  static constexpr uint8_t optional = 0;
  static constexpr std::string_view kept = "";
  static constexpr bool saves_kept = true;
  template <class Options>
  static constexpr uint32_t present(const Options&) {
    return 0;
  }
  template <class Options>
  static constexpr double initial(const Options&, int) {
    return 0;
  }
  /// Whether operand k, a state, is filled with the parameter's values at first.
  static constexpr bool begins_at_param(int) { return false; }
  template <class Options>
  static constexpr double kept_at_first(const Options&, int) {
    return 0;
  }
  template <class Options>
  static void advance(const Options&, double /*step*/, double* /*kept*/) {}
  /// What is wrong with options that are each within their domain; null: nothing.
  template <class Options>
  static constexpr const char* refuse(const Options&) {
    return nullptr;
  }
  /// Whether the states hold what steps have written, no longer what they were filled with.
  static constexpr bool is_filled(int64_t steps, const double*) { return steps > 0; }
  /// What the kept numbers are after states have been loaded, where they are not saved.
  static void resume(bool /*has_states*/, double* /*kept*/) {}
};

inline double sign_of(bool maximize) { return maximize ? -1 : 1; }

/// The gradient that a step goes along: the opposite one to maximize, with the decay that is part of it.
struct CoupledGradient {
  double sign, decay;
  Switch decays;
  template <class Options>
  explicit CoupledGradient(const Options& o) : sign(sign_of(o.maximize)), decay(o.weight_decay) {
    if constexpr (requires { o.decoupled_weight_decay; })
      if (o.decoupled_weight_decay) decay = 0;
    decays = decay != 0;  // 0 times an infinite parameter would be nan
  }
  template <class V>
  RG_HD [[gnu::always_inline]] inline V of(const V& grad, const V& param) const {
    const V g = sign * grad;
    return decays ? g + decay * param : g;
  }
};

/// What decoupled decay leaves of a parameter.
template <class Options>
double keep_of(const Options& o) {
  return o.decoupled_weight_decay ? 1 - o.lr * o.weight_decay : 1;
}

}  // namespace retrograd::ops
#pragma GCC visibility pop
