// A step of an average of values: average += (value - average) share. With share 1 it becomes the value. It is no optimizer,
// but has the same form: many tensors are updated in one pass (optim/averaged_model.h).
#pragma once

#include "ops/optimizers/rule.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::ops {

struct Average : OptimizerRule {
  static constexpr std::string_view name = "Average", op_name = "average_step", doc = "a step of an average";
  static constexpr std::string_view operands = "average, value";
  static constexpr int inputs = 2;
  using Formula = Average;

  struct Options {
    double share = 1;
    template <class F>
    constexpr void visit(F&& f) {
      f("share", share, kNotNegative);
    }
  };

  struct Factors {
    double share;
    Switch takes_value;
    Factors(const Options& o, const Progress&) : share(o.share), takes_value(o.share == 1) {}
  };

  template <class V>
  RG_HD [[gnu::always_inline]] static inline void step(const Factors& a, Present, const V* x, V* y) {
    y[0] = a.takes_value ? x[1] : x[0] + (x[1] - x[0]) * a.share;
  }
};

}  // namespace retrograd::ops
#pragma GCC visibility pop
