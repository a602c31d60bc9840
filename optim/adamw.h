// AdamW: Adam with weight decay decoupled from the gradient (Loshchilov and Hutter 2019). Formulas as in PyTorch
// (torch.optim.AdamW), with t the step:
//   p *= 1 - lr * weight_decay
//   m += (g - m) (1 - beta1);  v = beta2 v + (1 - beta2) g^2
//   p -= lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + eps); with amsgrad the largest v so far in place of v
#pragma once

#include <array>

#include "optim/optimizer.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::optim {

struct AdamWOptions {
  double lr = 1e-3;
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 1e-2;
  bool amsgrad = false;
  bool maximize = false;
};

struct AdamWAlgorithm {
  using Step = ops::AdamWStep;
  using Options = AdamWOptions;
  static constexpr std::string_view name = "AdamW";
  static constexpr bool needs_step = true;
  struct State {
    int64_t step = 0, ahead = 0;
    Tensor exp_avg, exp_avg_sq, max_exp_avg_sq;
  };
  static void check(const Options& options, SourceLocation where);
  static void make(const Options& options, State& state, const Tensor& param);
  static constexpr int numbers_count = 6;
  static std::array<Tensor, 5> operands(const Options& options, const State& state, const Tensor& param);
  static void numbers(const Options& options, State& state, int64_t step, std::span<Scalar> out);
  static Step::Attrs attrs(const Options& options, std::span<const Scalar> numbers);
  static std::array<bool, 2> form(const Options& options) { return {options.amsgrad, options.maximize}; }
  static bool is_filled(const State& state) { return state.step > 0; }
  static void resume(State&, const State&) {}
  template <class F>
  static void visit(State& state, F&& f) {
    f("exp_avg", state.exp_avg);
    f("exp_avg_sq", state.exp_avg_sq);
    f("max_exp_avg_sq", state.max_exp_avg_sq);
  }
};

using AdamW = OptimizerOf<AdamWAlgorithm>;

}  // namespace retrograd::optim
#pragma GCC visibility pop
