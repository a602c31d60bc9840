// AdEMAMix: AdamW with a second, slow average of the gradient (Pagliardini et al. 2024, algorithm 1). With t the step:
//   m += (g - m) (1 - beta1);  slow += (g - slow) (1 - beta3_t);  v = beta2 v + (1 - beta2) g^2
//   p = p (1 - lr * weight_decay) - lr (m / (1 - beta1^t) + alpha_t * slow) / (sqrt(v) / sqrt(1 - beta2^t) + eps)
// In the first alpha_warmup steps alpha_t grows linearly from 0 to alpha; in the first beta3_warmup steps the half-life of
// the slow average grows linearly from that of beta1 to that of beta3.
#pragma once

#include "ops/optimizers/rule.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::ops {

struct AdEMAMix : OptimizerRule {
  static constexpr std::string_view name = "AdEMAMix", op_name = "ademamix_step", doc = "a step of AdEMAMix";
  static constexpr std::string_view operands = "param, exp_avg, exp_avg_slow, exp_avg_sq, grad";
  static constexpr int inputs = 5;
  using Formula = AdEMAMix;

  struct Options {
    double lr = 1e-3;
    std::array<double, 3> betas = {0.9, 0.999, 0.9999};
    double alpha = 2;         ///< the weight of the slow average
    double beta3_warmup = 0;  ///< steps
    double alpha_warmup = 0;  ///< steps
    double eps = 1e-8;
    double weight_decay = 0;
    bool maximize = false;

    template <class F>
    constexpr void visit(F&& f) {
      f("lr", lr, kNotNegative);
      f("betas", betas, kBelowOne);
      f("alpha", alpha, kNotNegative);
      f("beta3_warmup", beta3_warmup, kNotNegative);
      f("alpha_warmup", alpha_warmup, kNotNegative);
      f("eps", eps, kNotNegative);
      f("weight_decay", weight_decay, kNotNegative);
      f("maximize", maximize);
    }
    double alpha_at(double step) const { return step < alpha_warmup ? alpha * step / alpha_warmup : alpha; }
    double beta3_at(double step) const {
      if (!(step < beta3_warmup)) return betas[2];
      const auto half_life = [](double beta) { return std::log(0.5) / std::log(beta + 1e-8) - 1; };
      const double share = step / beta3_warmup;
      return std::pow(0.5, 1 / ((1 - share) * half_life(betas[0]) + share * half_life(betas[2]) + 1));
    }
  };

  struct Factors {
    double sign, keep, fresh1, fresh3, beta2, fresh2, lr, scale1, alpha, scale2, eps;
    Factors(const Options& o, const Progress& at)
        : sign(sign_of(o.maximize)),
          keep(1 - o.lr * o.weight_decay),
          fresh1(1 - o.betas[0]),
          fresh3(1 - o.beta3_at(at.step)),
          beta2(o.betas[1]),
          fresh2(1 - o.betas[1]),
          lr(o.lr),
          scale1(1 / (1 - std::pow(o.betas[0], at.step))),
          alpha(o.alpha_at(at.step)),
          scale2(1 / std::sqrt(1 - std::pow(o.betas[1], at.step))),
          eps(o.eps) {}
  };

  template <class V>
  RG_HD [[gnu::always_inline]] static inline void step(const Factors& a, Present, const V* x, V* y) {
    const V g = a.sign * x[4];
    y[1] = x[1] + (g - x[1]) * a.fresh1;
    y[2] = x[2] + (g - x[2]) * a.fresh3;
    y[3] = a.beta2 * x[3] + a.fresh2 * g * g;
    y[0] =
        x[0] * a.keep - a.lr * ((y[1] * a.scale1 + a.alpha * y[2]) / (math::sqrt(y[3]) * a.scale2 + a.eps));
  }
};

}  // namespace retrograd::ops
#pragma GCC visibility pop
