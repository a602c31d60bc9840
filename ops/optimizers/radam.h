// RAdam: Adam with a rectified step size (Liu et al. 2020), as torch.optim.RAdam. With t the step:
//   g = grad + weight_decay * p;  decoupled: p *= 1 - lr * weight_decay instead
//   m += (g - m) (1 - beta1);  v = beta2 v + (1 - beta2) g^2
//   rho = 2 / (1 - beta2) - 1;  rho_t = rho - 2 t beta2^t / (1 - beta2^t)
//   rho_t > 5:  r = sqrt((rho_t - 4) (rho_t - 2) rho / ((rho - 4) (rho - 2) rho_t))
//               p -= lr / (1 - beta1^t) * m * r * sqrt(1 - beta2^t) / (sqrt(v) + eps)
//   else:       p -= lr / (1 - beta1^t) * m
#pragma once

#include "ops/optimizers/rule.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::ops {

struct RAdam : OptimizerRule {
  static constexpr std::string_view name = "RAdam", op_name = "radam_step", doc = "a step of RAdam";
  static constexpr std::string_view operands = "param, exp_avg, exp_avg_sq, grad";
  static constexpr int inputs = 4;
  using Formula = RAdam;

  struct Options {
    double lr = 1e-3;
    std::array<double, 2> betas = {0.9, 0.999};
    double eps = 1e-8;
    double weight_decay = 0;
    bool decoupled_weight_decay = false;
    bool maximize = false;

    template <class F>
    constexpr void visit(F&& f) {
      f("lr", lr, kNotNegative);
      f("betas", betas, kBelowOne);
      f("eps", eps, kNotNegative);
      f("weight_decay", weight_decay, kNotNegative);
      f("decoupled_weight_decay", decoupled_weight_decay);
      f("maximize", maximize);
    }
  };

  struct Factors {
    CoupledGradient gradient;
    double keep, fresh1, beta2, fresh2, size, eps;
    Switch is_rectified;
    Factors(const Options& o, const Progress& at)
        : gradient(o),
          keep(keep_of(o)),
          fresh1(1 - o.betas[0]),
          beta2(o.betas[1]),
          fresh2(1 - o.betas[1]),
          size(o.lr / (1 - std::pow(o.betas[0], at.step))),
          eps(o.eps) {
      const double power = std::pow(o.betas[1], at.step), rho = 2 / (1 - o.betas[1]) - 1;
      const double now = rho - 2 * at.step * power / (1 - power);
      is_rectified = now > 5;
      if (is_rectified)
        size *= std::sqrt((now - 4) * (now - 2) * rho / ((rho - 4) * (rho - 2) * now) * (1 - power));
    }
  };

  template <class V>
  RG_HD [[gnu::always_inline]] static inline void step(const Factors& a, Present, const V* x, V* y) {
    const V g = a.gradient.of(x[3], x[0]);
    y[1] = x[1] + (g - x[1]) * a.fresh1;
    y[2] = a.beta2 * x[2] + a.fresh2 * g * g;
    const V change = a.is_rectified ? y[1] / (math::sqrt(y[2]) + a.eps) : y[1];
    y[0] = x[0] * a.keep - a.size * change;
  }
};

}  // namespace retrograd::ops
#pragma GCC visibility pop
