// Stochastic gradient descent with momentum (Sutskever et al. 2013, in the form of torch.optim.SGD):
//   g = grad + weight_decay * p
//   buffer = momentum * buffer + (1 - dampening) * g, or g itself where there is none yet
//   p -= lr * (nesterov: g + momentum * buffer; else buffer, or g without momentum)
#pragma once

#include "ops/optimizers/rule.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::ops {

struct SGD : OptimizerRule {
  static constexpr std::string_view name = "SGD", op_name = "sgd_step";
  static constexpr std::string_view doc = "a step of stochastic gradient descent with momentum";
  static constexpr std::string_view operands = "param, momentum_buffer, grad";
  static constexpr int inputs = 3;
  static constexpr uint8_t optional = 0b010;
  using Formula = SGD;

  struct Options {
    double lr = 1e-3;
    double momentum = 0;
    double dampening = 0;
    double weight_decay = 0;
    bool nesterov = false;  ///< needs momentum > 0 and dampening 0
    bool maximize = false;

    template <class F>
    constexpr void visit(F&& f) {
      f("lr", lr, kNotNegative);
      f("momentum", momentum, kNotNegative);
      f("dampening", dampening, Domain{-kUnlimited, kUnlimited});
      f("weight_decay", weight_decay, kNotNegative);
      f("nesterov", nesterov);
      f("maximize", maximize);
    }
  };
  static constexpr const char* refuse(const Options& o) {
    return o.nesterov && !(o.momentum > 0 && o.dampening == 0) ? "nesterov needs a momentum and no dampening"
                                                               : nullptr;
  }
  static constexpr uint32_t present(const Options& o) { return o.momentum != 0 ? optional : 0; }

  /// Whether a step has written the buffer, which PyTorch makes then: 0 or 1.
  static constexpr std::string_view kept = "buffered";
  static constexpr bool saves_kept = false;  // PyTorch has no such state
  static void advance(const Options& o, double, double* kept) {
    if (o.momentum != 0) kept[0] = 1;
  }
  static bool is_filled(int64_t, const double* kept) { return kept[0] != 0; }
  static void resume(bool has_states, double* kept) { kept[0] = has_states; }

  struct Factors {
    CoupledGradient gradient;
    double lr, momentum, keep, fresh;
    Switch nesterov;
    Factors(const Options& o, const Progress& at)
        : gradient(o),
          lr(o.lr),
          momentum(o.momentum),
          keep(at.kept[0] != 0 ? o.momentum : 0),
          fresh(at.kept[0] != 0 ? 1 - o.dampening : 1),
          nesterov(o.nesterov) {}
  };

  template <class V>
  RG_HD [[gnu::always_inline]] static inline void step(const Factors& a, Present has, const V* x, V* y) {
    V g = a.gradient.of(x[2], x[0]);
    if (has[1]) {
      y[1] = a.keep * x[1] + a.fresh * g;
      g = a.nesterov ? g + a.momentum * y[1] : y[1];
    }
    y[0] = x[0] - a.lr * g;
  }
};

}  // namespace retrograd::ops
#pragma GCC visibility pop
