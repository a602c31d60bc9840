// Learning-rate schedulers, with torch.optim.lr_scheduler's names, arguments and rates.
//
//   optim::StepLR scheduler(optimizer, 30, 0.1);
//   for (int epoch = 0; epoch < 100; ++epoch) {
//     train(optimizer);
//     scheduler.step();
//   }
//
//   LRScheduler   the base: sets the learning rates of all groups at once, from an epoch to the next
//   below it      one class for each schedule, and two that compose others: SequentialLR, ChainedScheduler
//   ReduceLROnPlateau, which follows a measure, and is no LRScheduler
//
// An epoch is whatever lies between two calls of step(): an epoch, or a step of the optimizer. A scheduler sets the rate
// of epoch 0 when it is made. As in PyTorch, most compute a rate from the one before: so several schedulers may change the
// same optimizer. A recorded step reads learning rates before each run: no schedule causes another recording.
// Limits: the optimizer must outlive its schedulers. One thread at a time.
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <optional>

#include "optim/optimizer.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::optim {

namespace detail {
/// Error(bad_argument).
[[noreturn]] void refuse_schedule(std::string_view scheduler, std::string_view text);
void check_per_group(std::string_view scheduler, size_t values, const Optimizer& optimizer);
}

class LRScheduler {
 public:
  virtual ~LRScheduler() = default;
  LRScheduler(const LRScheduler&) = delete;
  LRScheduler& operator=(const LRScheduler&) = delete;

  /// Sets the learning rates of the next epoch.
  virtual void step();
  /// Sets those of `epoch`, from the initial rates where the schedule has a formula for that.
  virtual void step_to(int64_t epoch);
  /// The rates that it has set, by group.
  const std::vector<double>& get_last_lr() const { return last_lr_; }
  int64_t last_epoch() const { return last_epoch_; }
  Optimizer& optimizer() const { return *optimizer_; }

  /// Numbers under PyTorch's names. Functions and constructor arguments are not among them.
  virtual StateDict state_dict() const;
  /// Error(bad_argument) for a missing or unknown key, or another number of groups.
  virtual void load_state_dict(const StateDict& state, SourceLocation where = SourceLocation::current());

 protected:
  /// A group in an epoch.
  struct Epoch {
    int64_t number;
    bool is_first;  // set by the constructor
    size_t group;
    double lr, initial_lr;  // its present rate, and that before any scheduler
  };

  explicit LRScheduler(Optimizer& optimizer);
  /// To be called at the end of a constructor.
  virtual void begin();
  /// Before epoch 0: the constructor's step is taken back.
  virtual void undo() { --last_epoch_; }
  /// The rate of the epoch, from that before.
  virtual double next_lr(const Epoch& epoch) const = 0;
  /// The rate of the epoch, from the initial one.
  virtual double lr_at(const Epoch& epoch) const { return next_lr(epoch); }
  /// Sets what else a schedule changes.
  virtual void set_others(int64_t /*epoch*/) {}
  void take_lrs();

  int64_t last_epoch_ = -1;  // before the first

  friend class ComposedScheduler;
  friend class SequentialLR;

 private:
  void set_lrs(bool is_first, bool from_initial);

  Optimizer* optimizer_;
  std::vector<double> base_lrs_, last_lr_;
};

/// A value for all groups, or one for each.
template <class T>
class PerGroup {
 public:
  template <std::convertible_to<T> U>
  PerGroup(U&& value) : values_{T(std::forward<U>(value))} {}
  PerGroup(std::vector<T> values) : values_(std::move(values)), is_list_(true) {}
  const T& at(size_t group) const { return is_list_ ? values_.at(group) : values_[0]; }
  /// Error(bad_argument) for another number of groups.
  void check(std::string_view scheduler, const Optimizer& optimizer) const {
    if (is_list_) detail::check_per_group(scheduler, values_.size(), optimizer);
  }

 private:
  std::vector<T> values_;
  bool is_list_ = false;
};

/// A factor by epoch.
using LRLambda = std::function<double(int64_t epoch)>;

/// The initial rate times lambda(epoch).
class LambdaLR final : public LRScheduler {
 public:
  LambdaLR(Optimizer& optimizer, PerGroup<LRLambda> lambdas);

 private:
  double next_lr(const Epoch& epoch) const override;
  PerGroup<LRLambda> lambdas_;
};

/// The rate before times lambda(epoch).
class MultiplicativeLR final : public LRScheduler {
 public:
  MultiplicativeLR(Optimizer& optimizer, PerGroup<LRLambda> lambdas);

 private:
  double next_lr(const Epoch& epoch) const override;
  PerGroup<LRLambda> lambdas_;
};

/// Times gamma every step_size epochs.
class StepLR final : public LRScheduler {
 public:
  StepLR(Optimizer& optimizer, int64_t step_size, double gamma = 0.1);

 private:
  double next_lr(const Epoch& epoch) const override;
  double lr_at(const Epoch& epoch) const override;
  int64_t step_size_;
  double gamma_;
};

/// Times gamma at each milestone, as often as it is listed.
class MultiStepLR final : public LRScheduler {
 public:
  MultiStepLR(Optimizer& optimizer, const std::vector<int64_t>& milestones, double gamma = 0.1);

 private:
  double next_lr(const Epoch& epoch) const override;
  double lr_at(const Epoch& epoch) const override;
  std::vector<int64_t> milestones_;  // sorted
  double gamma_;
};

/// Times factor in the first total_iters epochs.
class ConstantLR final : public LRScheduler {
 public:
  explicit ConstantLR(Optimizer& optimizer, double factor = 1.0 / 3, int64_t total_iters = 5);

 private:
  double next_lr(const Epoch& epoch) const override;
  double lr_at(const Epoch& epoch) const override;
  double factor_;
  int64_t total_iters_;
};

/// The factor goes from start_factor to end_factor linearly in total_iters epochs.
class LinearLR final : public LRScheduler {
 public:
  explicit LinearLR(Optimizer& optimizer, double start_factor = 1.0 / 3, double end_factor = 1,
                    int64_t total_iters = 5);

 private:
  double next_lr(const Epoch& epoch) const override;
  double lr_at(const Epoch& epoch) const override;
  double start_factor_, end_factor_;
  int64_t total_iters_;
};

/// Times gamma in each epoch.
class ExponentialLR final : public LRScheduler {
 public:
  ExponentialLR(Optimizer& optimizer, double gamma);

 private:
  double next_lr(const Epoch& epoch) const override;
  double lr_at(const Epoch& epoch) const override;
  double gamma_;
};

/// The initial rate times (1 - epoch / total_iters)^power.
class PolynomialLR final : public LRScheduler {
 public:
  explicit PolynomialLR(Optimizer& optimizer, int64_t total_iters = 5, double power = 1);

 private:
  double next_lr(const Epoch& epoch) const override;
  double lr_at(const Epoch& epoch) const override;
  int64_t total_iters_;
  double power_;
};

/// Half a cosine from the initial rate to eta_min in T_max epochs, and back (Loshchilov and Hutter 2017, without
/// restarts).
class CosineAnnealingLR final : public LRScheduler {
 public:
  CosineAnnealingLR(Optimizer& optimizer, int64_t T_max, double eta_min = 0);

 private:
  double next_lr(const Epoch& epoch) const override;
  double lr_at(const Epoch& epoch) const override;
  int64_t T_max_;
  double eta_min_;
};

/// Half a cosine from the initial rate to eta_min in T_0 epochs, then again in T_mult times as many, and so on.
class CosineAnnealingWarmRestarts final : public LRScheduler {
 public:
  CosineAnnealingWarmRestarts(Optimizer& optimizer, int64_t T_0, int64_t T_mult = 1, double eta_min = 0);

 private:
  double next_lr(const Epoch& epoch) const override;
  int64_t T_0_, T_mult_;
  double eta_min_;
};

struct CyclicLROptions {
  int64_t step_size_up = 2000;
  std::optional<int64_t> step_size_down = {};  ///< as step_size_up
  enum class Mode : uint8_t { triangular, triangular2, exp_range } mode = Mode::triangular;
  double gamma = 1;                             ///< of exp_range: the amplitude is times gamma^epoch
  std::function<double(double)> scale_fn = {};  ///< of the cycle, counted from 1, in place of `mode`
  bool cycle_momentum = true;  ///< from max_momentum down to base_momentum as the rate goes up
  double base_momentum = 0.8;
  double max_momentum = 0.9;
};

/// Goes up and down between base_lr and max_lr (Smith 2017).
class CyclicLR final : public LRScheduler {
 public:
  /// Error(bad_argument) for cycle_momentum with an optimizer that has neither momentum nor betas.
  CyclicLR(Optimizer& optimizer, PerGroup<double> base_lr, PerGroup<double> max_lr,
           CyclicLROptions options = {});

 private:
  double next_lr(const Epoch& epoch) const override;
  void set_others(int64_t epoch) override;
  double height(int64_t epoch) const;
  PerGroup<double> base_lr_, max_lr_;
  CyclicLROptions options_;
};

enum class AnnealStrategy : uint8_t { cos, linear };

struct OneCycleLROptions {
  double pct_start = 0.3;  ///< the share of steps in which the rate goes up
  AnnealStrategy anneal_strategy = AnnealStrategy::cos;
  bool cycle_momentum = true;
  double base_momentum = 0.85;
  double max_momentum = 0.95;
  double div_factor = 25;         ///< the first rate is max_lr / div_factor
  double final_div_factor = 1e4;  ///< the last is the first / final_div_factor
  bool three_phase = false;       ///< down to the first rate, and then to the last
};

/// Up to max_lr and down to almost 0 (Smith and Topin 2018). More than total_steps calls of step() are an
/// Error(bad_argument).
class OneCycleLR final : public LRScheduler {
 public:
  OneCycleLR(Optimizer& optimizer, PerGroup<double> max_lr, int64_t total_steps,
             OneCycleLROptions options = {});

 private:
  enum class Level : uint8_t { initial, max, min };
  // From one level to another; the momentum likewise, the other way round.
  struct Phase {
    double end;  // a step
    Level from, to;
  };
  double next_lr(const Epoch& epoch) const override;
  void set_others(int64_t epoch) override;
  double lr_of(Level level, size_t group) const;
  double momentum_of(Level level) const {
    return level == Level::max ? options_.base_momentum : options_.max_momentum;
  }
  template <class F>
  double between(int64_t epoch, const F& value) const;
  PerGroup<double> max_lr_;
  int64_t total_steps_;
  OneCycleLROptions options_;
  std::vector<Phase> phases_;
};

/// From the present rate to swa_lr in anneal_epochs: for stochastic weight averaging (optim/averaged_model.h).
class SWALR final : public LRScheduler {
 public:
  SWALR(Optimizer& optimizer, PerGroup<double> swa_lr, int64_t anneal_epochs = 10,
        AnnealStrategy anneal_strategy = AnnealStrategy::cos);

 private:
  double next_lr(const Epoch& epoch) const override;
  double share(double epoch) const;
  PerGroup<double> swa_lr_;
  int64_t anneal_epochs_;
  AnnealStrategy strategy_;
};

/// A scheduler made of others.
class ComposedScheduler : public LRScheduler {
 public:
  /// The states of the schedulers are "_schedulers.<number>.*".
  StateDict state_dict() const override;
  void load_state_dict(const StateDict& state, SourceLocation where = SourceLocation::current()) override;

 protected:
  /// Error(bad_argument) unless all are of the optimizer.
  ComposedScheduler(std::string_view name, Optimizer& optimizer,
                    std::vector<std::shared_ptr<LRScheduler>> schedulers);
  void undo() override;
  double next_lr(const Epoch& epoch) const override { return epoch.lr; }

  std::vector<std::shared_ptr<LRScheduler>> schedulers_;
};

/// One scheduler after another: number i + 1 begins at epoch milestones[i].
class SequentialLR final : public ComposedScheduler {
 public:
  /// Error(bad_argument) unless there is one milestone fewer than schedulers, in ascending order, and all are of the
  /// optimizer.
  SequentialLR(Optimizer& optimizer, std::vector<std::shared_ptr<LRScheduler>> schedulers,
               std::vector<int64_t> milestones);
  void step() override;
  void step_to(int64_t epoch) override;

 private:
  void begin() override;
  size_t index_at(int64_t epoch) const;
  std::vector<int64_t> milestones_;
};

/// All schedulers in each epoch, each on the rate that those before it have set.
class ChainedScheduler final : public ComposedScheduler {
 public:
  /// Error(bad_argument) unless there is a scheduler, and all have one optimizer.
  explicit ChainedScheduler(std::vector<std::shared_ptr<LRScheduler>> schedulers);
  void step() override;
  void step_to(int64_t epoch) override;

 private:
  void begin() override;
};

struct ReduceLROnPlateauOptions {
  enum class Mode : uint8_t { min, max } mode = Mode::min;
  double factor = 0.1;
  int64_t patience = 10;    ///< epochs without improvement that are allowed
  double threshold = 1e-4;  ///< the least improvement
  enum class ThresholdMode : uint8_t { rel, abs } threshold_mode = ThresholdMode::rel;
  int64_t cooldown = 0;  ///< epochs after a reduction in which nothing is counted
  PerGroup<double> min_lr = 0;
  double eps = 1e-8;  ///< a smaller reduction is not made
};

/// Reduces the rate when a measure stops improving.
class ReduceLROnPlateau {
 public:
  explicit ReduceLROnPlateau(Optimizer& optimizer, ReduceLROnPlateauOptions options = {});
  ReduceLROnPlateau(const ReduceLROnPlateau&) = delete;
  ReduceLROnPlateau& operator=(const ReduceLROnPlateau&) = delete;

  /// Call it once an epoch, with a loss or, in mode max, a score.
  void step(double metrics);
  const std::vector<double>& get_last_lr() const { return last_lr_; }
  StateDict state_dict() const;
  void load_state_dict(const StateDict& state, SourceLocation where = SourceLocation::current());

 private:
  bool is_better(double value) const;
  Optimizer* optimizer_;
  ReduceLROnPlateauOptions options_;
  double best_;
  int64_t last_epoch_ = 0, num_bad_epochs_ = 0, cooldown_counter_ = 0;
  std::vector<double> last_lr_;
};

}  // namespace retrograd::optim
#pragma GCC visibility pop
