// Adam (Kingma and Ba 2015) and AdamW, Adam with decoupled weight decay (Loshchilov and Hutter 2019), as torch.optim has
// them. With t the step:
//   g = grad + weight_decay * p;  decoupled: p *= 1 - lr * weight_decay instead
//   m += (g - m) (1 - beta1);  v = beta2 v + (1 - beta2) g^2
//   p -= lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + eps); with amsgrad the largest v so far in place of v
#pragma once

#include "ops/optimizers/rule.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::ops {

struct AdamFormula : OptimizerRule {
  static constexpr std::string_view operands = "param, exp_avg, exp_avg_sq, max_exp_avg_sq, grad";
  static constexpr int inputs = 5;
  static constexpr uint8_t optional = 0b01000;
  using Formula = AdamFormula;

  template <class Options>
  static constexpr uint32_t present(const Options& o) {
    return o.amsgrad ? optional : 0;
  }

  struct Factors {
    CoupledGradient gradient;
    double keep, fresh1, beta2, fresh2, size, scale2, eps;
    template <class Options>
    Factors(const Options& o, const Progress& at)
        : gradient(o),
          keep(keep_of(o)),
          fresh1(1 - o.betas[0]),
          beta2(o.betas[1]),
          fresh2(1 - o.betas[1]),
          size(o.lr / (1 - std::pow(o.betas[0], at.step))),
          scale2(1 / std::sqrt(1 - std::pow(o.betas[1], at.step))),
          eps(o.eps) {}
  };

  template <class V>
  RG_HD [[gnu::always_inline]] static inline void step(const Factors& a, Present has, const V* x, V* y) {
    const V g = a.gradient.of(x[4], x[0]);
    y[1] = x[1] + (g - x[1]) * a.fresh1;
    y[2] = a.beta2 * x[2] + a.fresh2 * g * g;
    V largest = y[2];
    if (has[3]) largest = y[3] = math::select(y[2] > x[3], y[2], x[3]);
    y[0] = x[0] * a.keep - a.size * (y[1] / (math::sqrt(largest) * a.scale2 + a.eps));
  }
};

struct Adam : AdamFormula {
  static constexpr std::string_view name = "Adam", op_name = "adam_step", doc = "a step of Adam";

  struct Options {
    double lr = 1e-3;
    std::array<double, 2> betas = {0.9, 0.999};
    double eps = 1e-8;
    double weight_decay = 0;
    bool amsgrad = false;
    bool maximize = false;
    bool decoupled_weight_decay = false;  ///< as AdamW

    template <class F>
    constexpr void visit(F&& f) {
      f("lr", lr, kNotNegative);
      f("betas", betas, kBelowOne);
      f("eps", eps, kNotNegative);
      f("weight_decay", weight_decay, kNotNegative);
      f("amsgrad", amsgrad);
      f("maximize", maximize);
      f("decoupled_weight_decay", decoupled_weight_decay);
    }
  };
};

struct AdamW : AdamFormula {
  static constexpr std::string_view name = "AdamW", op_name = "adamw_step", doc = "a step of AdamW";

  struct Options {
    double lr = 1e-3;
    std::array<double, 2> betas = {0.9, 0.999};
    double eps = 1e-8;
    double weight_decay = 1e-2;
    bool amsgrad = false;
    bool maximize = false;
    static constexpr bool decoupled_weight_decay = true;

    template <class F>
    constexpr void visit(F&& f) {
      f("lr", lr, kNotNegative);
      f("betas", betas, kBelowOne);
      f("eps", eps, kNotNegative);
      f("weight_decay", weight_decay, kNotNegative);
      f("amsgrad", amsgrad);
      f("maximize", maximize);
    }
  };
};

}  // namespace retrograd::ops
#pragma GCC visibility pop
