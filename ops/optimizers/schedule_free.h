// Schedule-free AdamW (Defazio et al. 2024, algorithm 1 and its reference implementation). The parameter is y, between
// the steps' own sequence z and its average x, which evaluation uses (optim/schedule_free.h). With t the step:
//   rate = lr * min(1, t / warmup_steps);  r = rate * sqrt(1 - beta2^t)
//   weight = t^power * (largest r so far)^weight_lr_power;  c = weight / (sum of weights so far)
//   v = beta2 v + (1 - beta2) g^2;  d = g / (sqrt(v) + eps) + weight_decay * y
//   y += (z - y) c + r (beta1 (1 - c) - 1) d;  z -= r d
#pragma once

#include "ops/optimizers/rule.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::ops {

struct AdamWScheduleFree : OptimizerRule {
  static constexpr std::string_view name = "AdamWScheduleFree", op_name = "schedule_free_step";
  static constexpr std::string_view doc = "a step of schedule-free AdamW";
  static constexpr std::string_view operands = "param, z, exp_avg_sq, grad";
  static constexpr int inputs = 4;
  using Formula = AdamWScheduleFree;

  struct Options {
    double lr = 2.5e-3;
    std::array<double, 2> betas = {0.9, 0.999};
    double eps = 1e-8;
    double weight_decay = 0;
    double warmup_steps = 0;
    double r = 0;  ///< the power of t in an iterate's weight
    double weight_lr_power = 2;
    bool maximize = false;

    template <class F>
    constexpr void visit(F&& f) {
      f("lr", lr, kNotNegative);
      f("betas", betas, kBelowOne);
      f("eps", eps, kNotNegative);
      f("weight_decay", weight_decay, kNotNegative);
      f("warmup_steps", warmup_steps, kNotNegative);
      f("r", r, kNotNegative);
      f("weight_lr_power", weight_lr_power, kNotNegative);
      f("maximize", maximize);
    }
    double rate(double step) const {
      const double warm = step < warmup_steps ? step / warmup_steps : 1;
      return lr * warm * std::sqrt(1 - std::pow(betas[1], step));
    }
    double weight(double step, double largest) const {
      return std::pow(step, r) * std::pow(largest, weight_lr_power);
    }
  };
  static constexpr const char* refuse(const Options& o) {
    return o.betas[0] > 0 ? nullptr : "the first beta must be above 0";
  }
  /// z begins at the parameter.
  static constexpr bool begins_at_param(int k) { return k == 1; }

  static constexpr std::string_view kept = "lr_max, weight_sum";
  static void advance(const Options& o, double step, double* kept) {
    kept[0] = std::fmax(o.rate(step), kept[0]);
    kept[1] += o.weight(step, kept[0]);
  }

  struct Factors {
    double sign, beta2, fresh2, eps, decay, share, of_param, rate;
    Factors(const Options& o, const Progress& at)
        : sign(sign_of(o.maximize)),
          beta2(o.betas[1]),
          fresh2(1 - o.betas[1]),
          eps(o.eps),
          decay(o.weight_decay),
          rate(o.rate(at.step)) {
      const double weight = o.weight(at.step, std::fmax(rate, at.kept[0])), sum = at.kept[1] + weight;
      share = sum > 0 ? weight / sum : 0;
      of_param = rate * (o.betas[0] * (1 - share) - 1);
    }
  };

  template <class V>
  RG_HD [[gnu::always_inline]] static inline void step(const Factors& a, Present, const V* x, V* y) {
    const V g = a.sign * x[3];
    y[2] = a.beta2 * x[2] + a.fresh2 * g * g;
    const V d = g / (math::sqrt(y[2]) + a.eps) + a.decay * x[0];
    y[0] = x[0] + (x[1] - x[0]) * a.share + a.of_param * d;
    y[1] = x[1] - a.rate * d;
  }
};

}  // namespace retrograd::ops
#pragma GCC visibility pop
