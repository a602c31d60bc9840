// Adagrad (Duchi et al. 2011), as torch.optim.Adagrad. With t the step:
//   g = grad + weight_decay * p;  sum += g^2
//   p -= lr / (1 + (t - 1) lr_decay) * g / (sqrt(sum) + eps)
#pragma once

#include "ops/optimizers/rule.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::ops {

struct Adagrad : OptimizerRule {
  static constexpr std::string_view name = "Adagrad", op_name = "adagrad_step", doc = "a step of Adagrad";
  static constexpr std::string_view operands = "param, sum, grad";
  static constexpr int inputs = 3;
  using Formula = Adagrad;

  struct Options {
    double lr = 1e-2;
    double lr_decay = 0;
    double weight_decay = 0;
    double initial_accumulator_value = 0;  ///< of the sum
    double eps = 1e-10;
    bool maximize = false;

    template <class F>
    constexpr void visit(F&& f) {
      f("lr", lr, kNotNegative);
      f("lr_decay", lr_decay, kNotNegative);
      f("weight_decay", weight_decay, kNotNegative);
      f("initial_accumulator_value", initial_accumulator_value, kNotNegative);
      f("eps", eps, kNotNegative);
      f("maximize", maximize);
    }
  };
  static constexpr double initial(const Options& o, int) { return o.initial_accumulator_value; }

  struct Factors {
    CoupledGradient gradient;
    double size, eps;
    Factors(const Options& o, const Progress& at)
        : gradient(o), size(o.lr / (1 + (at.step - 1) * o.lr_decay)), eps(o.eps) {}
  };

  template <class V>
  RG_HD [[gnu::always_inline]] static inline void step(const Factors& a, Present, const V* x, V* y) {
    const V g = a.gradient.of(x[2], x[0]);
    y[1] = x[1] + g * g;
    y[0] = x[0] - a.size * (g / (math::sqrt(y[1]) + a.eps));
  }
};

}  // namespace retrograd::ops
#pragma GCC visibility pop
