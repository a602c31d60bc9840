// Adadelta (Zeiler 2012), as torch.optim.Adadelta:
//   g = grad + weight_decay * p;  s = rho s + (1 - rho) g^2
//   d = sqrt(a + eps) / sqrt(s + eps) * g;  a = rho a + (1 - rho) d^2
//   p -= lr * d
#pragma once

#include "ops/optimizers/rule.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::ops {

struct Adadelta : OptimizerRule {
  static constexpr std::string_view name = "Adadelta", op_name = "adadelta_step", doc = "a step of Adadelta";
  static constexpr std::string_view operands = "param, square_avg, acc_delta, grad";
  static constexpr int inputs = 4;
  using Formula = Adadelta;

  struct Options {
    double lr = 1;
    double rho = 0.9;
    double eps = 1e-6;
    double weight_decay = 0;
    bool maximize = false;

    template <class F>
    constexpr void visit(F&& f) {
      f("lr", lr, kNotNegative);
      f("rho", rho, Domain{0, 1});
      f("eps", eps, kNotNegative);
      f("weight_decay", weight_decay, kNotNegative);
      f("maximize", maximize);
    }
  };

  struct Factors {
    CoupledGradient gradient;
    double lr, rho, fresh, eps;
    Factors(const Options& o, const Progress&)
        : gradient(o), lr(o.lr), rho(o.rho), fresh(1 - o.rho), eps(o.eps) {}
  };

  template <class V>
  RG_HD [[gnu::always_inline]] static inline void step(const Factors& a, Present, const V* x, V* y) {
    const V g = a.gradient.of(x[3], x[0]);
    y[1] = a.rho * x[1] + a.fresh * g * g;
    const V d = math::sqrt(x[2] + a.eps) / math::sqrt(y[1] + a.eps) * g;
    y[2] = a.rho * x[2] + a.fresh * d * d;
    y[0] = x[0] - a.lr * d;
  }
};

}  // namespace retrograd::ops
#pragma GCC visibility pop
