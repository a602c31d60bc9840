// Adamax: Adam with the largest gradient in place of its second moment (Kingma and Ba 2015, section 7.1), as
// torch.optim.Adamax. With t the step:
//   g = grad + weight_decay * p
//   m += (g - m) (1 - beta1);  u = max(beta2 u, |g| + eps)
//   p -= lr / (1 - beta1^t) * m / u
#pragma once

#include "ops/optimizers/rule.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::ops {

struct Adamax : OptimizerRule {
  static constexpr std::string_view name = "Adamax", op_name = "adamax_step", doc = "a step of Adamax";
  static constexpr std::string_view operands = "param, exp_avg, exp_inf, grad";
  static constexpr int inputs = 4;
  using Formula = Adamax;

  struct Options {
    double lr = 2e-3;
    std::array<double, 2> betas = {0.9, 0.999};
    double eps = 1e-8;
    double weight_decay = 0;
    bool maximize = false;

    template <class F>
    constexpr void visit(F&& f) {
      f("lr", lr, kNotNegative);
      f("betas", betas, kBelowOne);
      f("eps", eps, kNotNegative);
      f("weight_decay", weight_decay, kNotNegative);
      f("maximize", maximize);
    }
  };

  struct Factors {
    CoupledGradient gradient;
    double fresh1, beta2, size, eps;
    Factors(const Options& o, const Progress& at)
        : gradient(o),
          fresh1(1 - o.betas[0]),
          beta2(o.betas[1]),
          size(o.lr / (1 - std::pow(o.betas[0], at.step))),
          eps(o.eps) {}
  };

  template <class V>
  RG_HD [[gnu::always_inline]] static inline void step(const Factors& a, Present, const V* x, V* y) {
    const V g = a.gradient.of(x[3], x[0]);
    y[1] = x[1] + (g - x[1]) * a.fresh1;
    y[2] = math::maximum(a.beta2 * x[2], math::abs(g) + a.eps);
    y[0] = x[0] - a.size * (y[1] / y[2]);
  }
};

}  // namespace retrograd::ops
#pragma GCC visibility pop
