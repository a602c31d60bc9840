// Lion, evolved sign momentum (Chen et al. 2023, program 1):
//   p = p (1 - lr * weight_decay) - lr * sign(beta1 m + (1 - beta1) g);  m = beta2 m + (1 - beta2) g
#pragma once

#include "ops/optimizers/rule.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::ops {

struct Lion : OptimizerRule {
  static constexpr std::string_view name = "Lion", op_name = "lion_step", doc = "a step of Lion";
  static constexpr std::string_view operands = "param, exp_avg, grad";
  static constexpr int inputs = 3;
  using Formula = Lion;

  struct Options {
    double lr = 1e-4;
    std::array<double, 2> betas = {0.9, 0.99};
    double weight_decay = 0;
    bool maximize = false;

    template <class F>
    constexpr void visit(F&& f) {
      f("lr", lr, kNotNegative);
      f("betas", betas, kBelowOne);
      f("weight_decay", weight_decay, kNotNegative);
      f("maximize", maximize);
    }
  };

  struct Factors {
    double sign, keep, lr, beta1, fresh1, beta2, fresh2;
    Factors(const Options& o, const Progress&)
        : sign(sign_of(o.maximize)),
          keep(1 - o.lr * o.weight_decay),
          lr(o.lr),
          beta1(o.betas[0]),
          fresh1(1 - o.betas[0]),
          beta2(o.betas[1]),
          fresh2(1 - o.betas[1]) {}
  };

  template <class V>
  RG_HD [[gnu::always_inline]] static inline void step(const Factors& a, Present, const V* x, V* y) {
    const V g = a.sign * x[2], direction = a.beta1 * x[1] + a.fresh1 * g;
    // The sign of 0 is 0, that of nan is nan.
    const V size = math::select(direction == direction, V(a.lr), direction);
    y[0] = x[0] * a.keep - math::select(direction == V(0), V(0), math::copysign(size, direction));
    y[1] = a.beta2 * x[1] + a.fresh2 * g;
  }
};

}  // namespace retrograd::ops
#pragma GCC visibility pop
