// The formulas of optimizer steps (ops/optimizer_steps.h), for host and device.
//
//   Numbers   the factors of a step, computed once from the op's attributes: numbers_of() in ops/optimizer_steps.h
//   Formula   the step of one element. V is a register of elements in kernel files of the CPU, one number on a device.
//
// x has an element of each operand of the op, y of each result, in their order: result k is the new value of operand k,
// and the gradient is the last operand. `has_state`: whether the optional operand is given; else its elements are
// neither read nor written. A formula without one says `optional = -1`, and then `has_state` is true.
//
// Kernels know no formula by its name: they are made for each of OptimizerFormulas, and found by the type of Numbers.
#pragma once

#ifdef RG_FORMULAS
#include "ops/formulas.h"
#endif
#include "ops/math.h"

namespace retrograd::inline v0::ops {

struct AdamWNumbers {
  double sign, keep, fresh1, beta2, fresh2, size, scale2, eps;
};

/// (p, m, v, largest, g).
template <class V>
struct AdamWFormula {
  using Numbers = AdamWNumbers;
  using T = typename V::Scalar;
  static constexpr int inputs = 5, outputs = 4, optional = 3;
  V sign, keep, fresh1, beta2, fresh2, size, scale2, eps;

  RG_HD explicit AdamWFormula(const AdamWNumbers& a)
      : sign(static_cast<T>(a.sign)),
        keep(static_cast<T>(a.keep)),
        fresh1(static_cast<T>(a.fresh1)),
        beta2(static_cast<T>(a.beta2)),
        fresh2(static_cast<T>(a.fresh2)),
        size(static_cast<T>(a.size)),
        scale2(static_cast<T>(a.scale2)),
        eps(static_cast<T>(a.eps)) {}

  RG_HD [[gnu::always_inline]] inline void step(bool has_state, const V* x, V* y) const {
    const V g = sign * x[4];
    y[1] = x[1] + (g - x[1]) * fresh1;
    y[2] = beta2 * x[2] + fresh2 * g * g;
    V largest = y[2];
    if (has_state) largest = y[3] = math::select(y[2] > x[3], y[2], x[3]);
    y[0] = x[0] * keep - size * (y[1] / (math::sqrt(largest) * scale2 + eps));
  }
};

struct SGDNumbers {
  double sign, decay, lr, momentum, keep, fresh, nesterov;  // nesterov: 0 or 1
};

/// (p, buffer, g).
template <class V>
struct SGDFormula {
  using Numbers = SGDNumbers;
  using T = typename V::Scalar;
  static constexpr int inputs = 3, outputs = 2, optional = 1;
  V sign, decay, lr, momentum, keep, fresh;
  bool nesterov;

  RG_HD explicit SGDFormula(const SGDNumbers& a)
      : sign(static_cast<T>(a.sign)),
        decay(static_cast<T>(a.decay)),
        lr(static_cast<T>(a.lr)),
        momentum(static_cast<T>(a.momentum)),
        keep(static_cast<T>(a.keep)),
        fresh(static_cast<T>(a.fresh)),
        nesterov(a.nesterov != 0) {}

  RG_HD [[gnu::always_inline]] inline void step(bool has_state, const V* x, V* y) const {
    V g = sign * x[2] + decay * x[0];
    if (has_state) {
      y[1] = keep * x[1] + fresh * g;
      g = nesterov ? g + momentum * y[1] : y[1];
    }
    y[0] = x[0] - lr * g;
  }
};

/// Stands for V where only the names in a formula matter.
struct AnyNumber {
  using Scalar = double;
};
template <template <class> class Formula>
using NumbersOf = typename Formula<AnyNumber>::Numbers;

/// Whether the optional operand is among the operands at x.
template <class Formula, class Operand>
RG_HD [[gnu::always_inline]] inline bool has_state(const Operand* x) {
  if constexpr (Formula::optional < 0)
    return true;
  else
    return x[Formula::optional] != nullptr;
}

template <template <class> class... Formula>
struct FormulaList {
  /// The most operands of a formula. There are fewer results.
  static constexpr int inputs = [] {
    int most = 0;
    ((most = Formula<AnyNumber>::inputs > most ? Formula<AnyNumber>::inputs : most), ...);
    return most;
  }();
};

/// In the order of OptimizerOps (ops/optimizer_steps.h).
using OptimizerFormulas = FormulaList<AdamWFormula, SGDFormula>;

}  // namespace retrograd::ops
