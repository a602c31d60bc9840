// L-BFGS (Liu and Nocedal 1989), as torch.optim.LBFGS: a quasi-Newton method for losses without noise.
//
//   optim::LBFGS optimizer(model.parameters(), {.line_search_fn = optim::LineSearchFn::strong_wolfe});
//   optimizer.step([&] {
//     optimizer.zero_grad();
//     const Tensor loss = ...;
//     loss.backward();
//     return loss;
//   });
//
// A step calls the closure as often as it needs, up to max_eval times. All parameters together are one vector. The history
// is two vectors for each of the last history_size changes, of the same dtype as the parameters.
// What a step does next depends on losses, so it cannot be recorded; its closure can be a compiled function.
// Limits: one parameter group; parameters of one dtype on one device.
#pragma once

#include <deque>

#include "optim/optimizer.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::optim {

enum class LineSearchFn : uint8_t { none, strong_wolfe };

struct LBFGSOptions {
  double lr = 1;
  int64_t max_iter = 20;                 ///< iterations of a step
  std::optional<int64_t> max_eval = {};  ///< evaluations of the closure in a step; max_iter * 5 / 4
  double tolerance_grad = 1e-7;          ///< a step ends when no element of the gradient is larger
  double tolerance_change = 1e-9;        ///< or when neither loss nor parameters change by more
  int64_t history_size = 100;
  LineSearchFn line_search_fn = LineSearchFn::none;
  bool maximize = false;
};

class LBFGS final : public Optimizer {
 public:
  explicit LBFGS(Tensors params, LBFGSOptions options = {}, SourceLocation where = SourceLocation::current());

  /// Error(bad_argument): it needs a closure.
  void step(SourceLocation where = SourceLocation::current()) override;
  /// Returns the first loss. Error(bad_argument) for a loss of more than one element, or options outside their domain.
  /// After an error, also of the closure, parameters and state are what they were before the step.
  Tensor step(const LossClosure& closure, SourceLocation where = SourceLocation::current()) override;

  size_t group_count() const override { return 1; }
  OptimizerParamGroup param_group(size_t index) override;
  Tensors parameters() const override { return params_; }
  /// "param_groups.0.lr", "0.d", "0.old_dirs.3" and so on: PyTorch's names, lists by number.
  StateDict state_dict() const override;
  void load_state_dict(const StateDict& state, SourceLocation where = SourceLocation::current()) override;

  LBFGSOptions options;

 private:
  // Two vectors that tell how the gradient changed along a step.
  struct Change {
    Tensor gradient, params;
    double ro;  // 1 / (gradient . params)
  };
  struct State {
    int64_t func_evals = 0, n_iter = 0;
    Tensor d, prev_flat_grad;  // undefined before the first iteration
    double t = 0, prev_loss = 0, H_diag = 1;
    std::deque<Change> changes;
  };

  Tensor iterate(const LossClosure& closure);
  double evaluate(const LossClosure& closure, Tensor* loss = nullptr);
  Tensor flat_gradient() const;
  void move(double t, const Tensor& direction) const;
  void update_direction(const Tensor& gradient);
  double search_line(const LossClosure& closure, double loss, Tensor& gradient, double slope, int64_t most,
                     int64_t& evaluations);

  Tensors params_;
  std::optional<double> initial_lr_;
  State state_;
};

}  // namespace retrograd::optim
#pragma GCC visibility pop
