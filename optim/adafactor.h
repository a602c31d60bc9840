// Adafactor (Shazeer and Stern 2018), as torch.optim.Adafactor: of a matrix it keeps the second moments of rows and columns
// only. With t the step, R(x) = |x| / sqrt(number of elements), and e1, e2 = eps:
//   fresh = t^beta2_decay;  size = max(e2, R(p)) min(lr, 1 / sqrt(t));  p *= 1 - lr * weight_decay
//   row += (mean of g^2 over the last dim - row) fresh;  col likewise over the dim before it
//   v = row col / max(mean of row over its rows, e1); of vectors and numbers v += (g^2 - v) fresh
//   u = g / sqrt(max(v, e1^2));  p -= size u / max(1, R(u) / d)
#pragma once

#include "optim/rule_info.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::optim {

struct AdafactorRule : ops::OptimizerRule {
  static constexpr std::string_view name = "Adafactor", states = "row_var, col_var, variance";

  struct Options {
    double lr = 1e-2;  ///< the most by which a parameter changes, relative to its size
    double beta2_decay = -0.8;
    std::array<double, 2> eps = {0, 1e-3};  ///< 0 for the first: that of the dtype
    double d = 1;                           ///< where the size of an update is clipped
    double weight_decay = 0;
    bool maximize = false;

    template <class F>
    constexpr void visit(F&& f) {
      f("lr", lr, ops::kNotNegative);
      f("beta2_decay", beta2_decay, ops::Domain{-ops::kUnlimited, 0});
      f("eps", eps, ops::kNotNegative);
      f("d", d, ops::Domain{1, ops::kUnlimited});
      f("weight_decay", weight_decay, ops::kNotNegative);
      f("maximize", maximize);
    }
  };

  static Tensor make_state(const Options& options, size_t state, const Tensor& param, ScalarType dtype);
  static constexpr size_t factors = 7;
  static void factors_of(const Options& options, double step, const Tensor& param, double* factors);
  static void update(std::span<const detail::ParamUpdate> updates, SourceLocation where);
};

}  // namespace retrograd::optim
#pragma GCC visibility pop
