// RMSprop (Hinton 2012; centered: Graves 2013), as torch.optim.RMSprop:
//   g = grad + weight_decay * p;  s = alpha s + (1 - alpha) g^2
//   centered: a += (g - a) (1 - alpha), and s - a^2 in place of s
//   d = g / (sqrt(s) + eps)
//   p -= lr * d; with momentum: buffer = momentum * buffer + d, and p -= lr * buffer
#pragma once

#include "ops/optimizers/rule.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::ops {

struct RMSprop : OptimizerRule {
  static constexpr std::string_view name = "RMSprop", op_name = "rmsprop_step", doc = "a step of RMSprop";
  static constexpr std::string_view operands = "param, square_avg, grad_avg, momentum_buffer, grad";
  static constexpr int inputs = 5;
  static constexpr uint8_t optional = 0b01100;
  using Formula = RMSprop;

  struct Options {
    double lr = 1e-2;
    double alpha = 0.99;
    double eps = 1e-8;
    double weight_decay = 0;
    double momentum = 0;
    bool centered = false;
    bool maximize = false;

    template <class F>
    constexpr void visit(F&& f) {
      f("lr", lr, kNotNegative);
      f("alpha", alpha, kNotNegative);
      f("eps", eps, kNotNegative);
      f("weight_decay", weight_decay, kNotNegative);
      f("momentum", momentum, kNotNegative);
      f("centered", centered);
      f("maximize", maximize);
    }
  };
  static constexpr uint32_t present(const Options& o) {
    return (o.centered ? 0b00100 : 0) | (o.momentum != 0 ? 0b01000 : 0);
  }

  struct Factors {
    CoupledGradient gradient;
    double lr, alpha, fresh, momentum, eps;
    Factors(const Options& o, const Progress&)
        : gradient(o), lr(o.lr), alpha(o.alpha), fresh(1 - o.alpha), momentum(o.momentum), eps(o.eps) {}
  };

  template <class V>
  RG_HD [[gnu::always_inline]] static inline void step(const Factors& a, Present has, const V* x, V* y) {
    const V g = a.gradient.of(x[4], x[0]);
    y[1] = a.alpha * x[1] + a.fresh * g * g;
    V square = y[1];
    if (has[2]) {
      y[2] = x[2] + (g - x[2]) * a.fresh;
      square = square - y[2] * y[2];
    }
    V d = g / (math::sqrt(square) + a.eps);
    if (has[3]) d = y[3] = a.momentum * x[3] + d;
    y[0] = x[0] - a.lr * d;
  }
};

}  // namespace retrograd::ops
#pragma GCC visibility pop
