// Rprop, resilient backpropagation (Riedmiller and Braun 1993), as torch.optim.Rprop: each element has a step size of its
// own, which grows while its gradient keeps its sign.
//   e = etas[1] where grad * prev > 0; etas[0] where it is < 0, and then g = 0; else 1
//   s = clamp(s * e, step_sizes[0], step_sizes[1])
//   p -= sign(g) * s;  prev = g
#pragma once

#include "ops/optimizers/rule.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::ops {

struct Rprop : OptimizerRule {
  static constexpr std::string_view name = "Rprop", op_name = "rprop_step", doc = "a step of Rprop";
  static constexpr std::string_view operands = "param, prev, step_size, grad";
  static constexpr int inputs = 4;
  using Formula = Rprop;

  struct Options {
    double lr = 1e-2;  ///< the first step size of all elements
    std::array<double, 2> etas = {0.5, 1.2};
    std::array<double, 2> step_sizes = {1e-6, 50};
    bool maximize = false;

    template <class F>
    constexpr void visit(F&& f) {
      f("lr", lr, kNotNegative);
      f("etas", etas, Domain{0, kUnlimited, true});
      f("step_sizes", step_sizes, kNotNegative);
      f("maximize", maximize);
    }
  };
  static constexpr const char* refuse(const Options& o) {
    return o.etas[0] < 1 && o.etas[1] > 1 ? nullptr : "etas must be below and above 1";
  }
  static constexpr double initial(const Options& o, int k) { return k == 2 ? o.lr : 0; }

  struct Factors {
    double sign, down, up, least, most;
    Factors(const Options& o, const Progress&)
        : sign(sign_of(o.maximize)),
          down(o.etas[0]),
          up(o.etas[1]),
          least(o.step_sizes[0]),
          most(o.step_sizes[1]) {}
  };

  template <class V>
  RG_HD [[gnu::always_inline]] static inline void step(const Factors& a, Present, const V* x, V* y) {
    const V g = a.sign * x[3], product = g * x[1];
    const V other = math::select(product < V(0), V(a.down), math::select(product == V(0), V(1), product));
    const V size = math::clamp(x[2] * math::select(product > V(0), V(a.up), other), V(a.least), V(a.most));
    y[1] = math::select(product < V(0), V(0), g);
    y[2] = size;
    y[0] = x[0] - math::select(y[1] == V(0), y[1], math::copysign(size, y[1]));
  }
};

}  // namespace retrograd::ops
#pragma GCC visibility pop
