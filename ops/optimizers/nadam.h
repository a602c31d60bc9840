// NAdam: Adam with Nesterov momentum (Dozat 2016), as torch.optim.NAdam. With t the step:
//   g = grad + weight_decay * p;  decoupled: p *= 1 - lr * weight_decay instead
//   mu_t = beta1 (1 - 0.96^(t momentum_decay) / 2);  M_t = mu_1 ... mu_t
//   m += (g - m) (1 - beta1);  v = beta2 v + (1 - beta2) g^2;  d = sqrt(v / (1 - beta2^t)) + eps
//   p -= lr (1 - mu_t) / (1 - M_t) * g / d + lr mu_(t+1) / (1 - M_(t+1)) * m / d
#pragma once

#include "ops/optimizers/rule.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::ops {

struct NAdam : OptimizerRule {
  static constexpr std::string_view name = "NAdam", op_name = "nadam_step", doc = "a step of NAdam";
  static constexpr std::string_view operands = "param, exp_avg, exp_avg_sq, grad";
  static constexpr int inputs = 4;
  using Formula = NAdam;

  struct Options {
    double lr = 2e-3;
    std::array<double, 2> betas = {0.9, 0.999};
    double eps = 1e-8;
    double weight_decay = 0;
    double momentum_decay = 4e-3;
    bool decoupled_weight_decay = false;
    bool maximize = false;

    template <class F>
    constexpr void visit(F&& f) {
      f("lr", lr, kNotNegative);
      f("betas", betas, kBelowOne);
      f("eps", eps, kNotNegative);
      f("weight_decay", weight_decay, kNotNegative);
      f("momentum_decay", momentum_decay, kNotNegative);
      f("decoupled_weight_decay", decoupled_weight_decay);
      f("maximize", maximize);
    }
    double mu(double step) const { return betas[0] * (1 - 0.5 * std::pow(0.96, step * momentum_decay)); }
  };

  /// M_(t-1).
  static constexpr std::string_view kept = "mu_product";
  static constexpr double kept_at_first(const Options&, int) { return 1; }
  static void advance(const Options& o, double step, double* kept) { kept[0] *= o.mu(step); }

  struct Factors {
    CoupledGradient gradient;
    double keep, fresh1, beta2, fresh2, of_gradient, of_moment, scale2, eps;
    Factors(const Options& o, const Progress& at)
        : gradient(o),
          keep(keep_of(o)),
          fresh1(1 - o.betas[0]),
          beta2(o.betas[1]),
          fresh2(1 - o.betas[1]),
          scale2(1 / (1 - std::pow(o.betas[1], at.step))),
          eps(o.eps) {
      const double mu = o.mu(at.step), next = o.mu(at.step + 1), product = at.kept[0] * mu;
      of_gradient = o.lr * (1 - mu) / (1 - product);
      of_moment = o.lr * next / (1 - product * next);
    }
  };

  template <class V>
  RG_HD [[gnu::always_inline]] static inline void step(const Factors& a, Present, const V* x, V* y) {
    const V g = a.gradient.of(x[3], x[0]);
    y[1] = x[1] + (g - x[1]) * a.fresh1;
    y[2] = a.beta2 * x[2] + a.fresh2 * g * g;
    const V d = math::sqrt(y[2] * a.scale2) + a.eps;
    y[0] = x[0] * a.keep - (a.of_gradient * g + a.of_moment * y[1]) / d;
  }
};

}  // namespace retrograd::ops
#pragma GCC visibility pop
