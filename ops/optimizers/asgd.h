// ASGD, averaged stochastic gradient descent (Polyak and Juditsky 1992), as torch.optim.ASGD. With t the step:
//   g = grad + weight_decay * p
//   p = p (1 - lambd * eta) - eta * g;  ax += (p - ax) mu
//   eta = lr / (1 + lambd lr t)^alpha;  mu = 1 / max(1, t - t0)        for the next step; at first lr and 1
#pragma once

#include "ops/optimizers/rule.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::ops {

struct ASGD : OptimizerRule {
  static constexpr std::string_view name = "ASGD", op_name = "asgd_step";
  static constexpr std::string_view doc = "a step of averaged stochastic gradient descent";
  static constexpr std::string_view operands = "param, ax, grad";
  static constexpr int inputs = 3;
  using Formula = ASGD;

  struct Options {
    double lr = 1e-2;
    double lambd = 1e-4;  ///< decay
    double alpha = 0.75;  ///< how fast the rate falls
    double t0 = 1e6;      ///< the step at which averaging begins
    double weight_decay = 0;
    bool maximize = false;

    template <class F>
    constexpr void visit(F&& f) {
      f("lr", lr, kNotNegative);
      f("lambd", lambd, Domain{-kUnlimited, kUnlimited});
      f("alpha", alpha, Domain{-kUnlimited, kUnlimited});
      f("t0", t0, Domain{-kUnlimited, kUnlimited});
      f("weight_decay", weight_decay, kNotNegative);
      f("maximize", maximize);
    }
  };

  static constexpr std::string_view kept = "eta, mu";
  static constexpr double kept_at_first(const Options& o, int k) { return k == 0 ? o.lr : 1; }
  static void advance(const Options& o, double step, double* kept) {
    kept[0] = o.lr / std::pow(1 + o.lambd * o.lr * step, o.alpha);
    kept[1] = step - o.t0 > 1 ? 1 / (step - o.t0) : 1;
  }

  struct Factors {
    CoupledGradient gradient;
    double keep, eta, mu;
    Switch averages;
    Factors(const Options& o, const Progress& at)
        : gradient(o),
          keep(1 - o.lambd * at.kept[0]),
          eta(at.kept[0]),
          mu(at.kept[1]),
          averages(at.kept[1] != 1) {}
  };

  template <class V>
  RG_HD [[gnu::always_inline]] static inline void step(const Factors& a, Present, const V* x, V* y) {
    const V g = a.gradient.of(x[2], x[0]);
    y[0] = x[0] * a.keep - a.eta * g;
    y[1] = a.averages ? x[1] + (y[0] - x[1]) * a.mu : y[0];
  }
};

}  // namespace retrograd::ops
#pragma GCC visibility pop
