// GradScaler: a factor for losses in 16-bit training, so that small gradients do not become 0, as torch.amp.GradScaler.
//
//   optim::GradScaler scaler;
//   scaler.scale(loss).backward();
//   scaler.unscale_(optimizer);   // only if gradients are looked at, or clipped, before the step
//   scaler.step(optimizer);
//   scaler.update();
//
// A step whose gradients are not all finite is skipped: parameters, state and the count of steps stay as they are, and
// update() makes the factor smaller. After growth_interval steps without that it grows.
//
// Data: the factor and the number of steps since it changed are tensors of one number, as are the marks of skipped steps,
// one for each optimizer. So all this can be recorded in a training step (tracer/function/compile.h), where nothing waits
// for the value of a mark: kernels read it. An optimizer counts the steps of a recorded function after each run; where it
// is on a device, that waits for the device.
// Limits: one thread at a time; the optimizers outlive the scaler's use of them.
#pragma once

#include <map>
#include <memory>

#include "optim/optimizer.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::optim {

struct GradScalerOptions {
  double init_scale = 65536;
  double growth_factor = 2;     ///< above 1
  double backoff_factor = 0.5;  ///< below 1
  int64_t growth_interval = 2000;
  bool enabled = true;  ///< otherwise it changes nothing
  Device device = kCPU;
};

class GradScaler {
 public:
  /// Error(bad_argument) for options outside their domain.
  explicit GradScaler(GradScalerOptions options = {}, SourceLocation where = SourceLocation::current());
  GradScaler(const GradScaler&) = delete;
  GradScaler& operator=(const GradScaler&) = delete;

  /// The loss times the factor.
  Tensor scale(const Tensor& loss) const;
  /// Divides the gradients of the optimizer's parameters by the factor, once between two updates: Error(bad_argument)
  /// for the second time.
  void unscale_(Optimizer& optimizer, SourceLocation where = SourceLocation::current());
  /// Steps the optimizer unless a gradient is not finite; unscales them first, if unscale_() was not called.
  void step(Optimizer& optimizer, SourceLocation where = SourceLocation::current());
  /// Adapts the factor, after the steps of all optimizers. Error(bad_argument) if no optimizer was unscaled.
  void update(SourceLocation where = SourceLocation::current());
  /// Sets the factor.
  void update(double new_scale, SourceLocation where = SourceLocation::current());

  double get_scale() const;
  /// Whether the last step of the optimizer was skipped.
  bool was_skipped(const Optimizer& optimizer) const;
  /// "scale", "growth_factor", "backoff_factor", "growth_interval", "_growth_tracker", as PyTorch's; empty if disabled.
  StateDict state_dict() const;
  /// Error(bad_argument) for a missing or unknown key.
  void load_state_dict(const StateDict& state, SourceLocation where = SourceLocation::current());

  const GradScalerOptions& options() const { return *options_; }

 private:
  enum class Stage : uint8_t { ready, unscaled, stepped };
  struct OfOptimizer {
    Stage stage = Stage::ready;
    Tensor found_inf;  // of its last unscaling
  };
  OfOptimizer& entry(Optimizer& optimizer, SourceLocation where);

  std::shared_ptr<GradScalerOptions> options_;  // a recorded function compares them
  Tensor scale_, tracker_;
  std::map<const Optimizer*, OfOptimizer> optimizers_;
};

}  // namespace retrograd::optim
#pragma GCC visibility pop
