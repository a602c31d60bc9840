// torch::optim: the library's optimizers with libtorch's options and parameter groups.
//
//   torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
//   for (auto& group : optimizer.param_groups())
//     static_cast<torch::optim::SGDOptions&>(group.options()).lr(0.01);
//
//   OptimizerOptions      the options of a group: those of an update rule (Rule::Options), which RuleOptions keeps
//   OptimizerParamGroup   tensors and their options
//   OptimizerParamState   what an optimizer keeps for a parameter: torch/optim_state.h
//   Optimizer             groups, defaults, step(); the base of optimizers that users write
//   OptimizerOf<Options>  an optimizer of an update rule. It owns a RuleOptimizer of the library, which reads these
//                         groups where they are: what a program changes holds in the next step, recorded ones too
//   LBFGS                 one group, which is that of the library's LBFGS
//
// Where libtorch takes an Optimizer, the library's schedulers and scalers take this one, too: it converts to the
// library's. An option that a group leaves at the constructor's value is that of the defaults, as in libtorch.
// Limits: what state() gives cannot be changed but for the elements of its tensors; LBFGS has no state(), and keeps the
// parameters that it was made with.
// Start reading at Optimizer; torch/optim.cc.
#pragma once

#include "optim/optimizers.h"
#include "torch/optim_state.h"

#pragma GCC visibility push(default)
namespace torch {

namespace optim {

class OptimizerOptions {
 public:
  virtual ~OptimizerOptions() = default;
  virtual std::unique_ptr<OptimizerOptions> clone() const = 0;
  // Error(unsupported) for a user's options without them.
  virtual double get_lr() const;
  virtual void set_lr(double lr);
  // For a user's save() and load() of the optimizer.
  virtual void serialize(torch::serialize::InputArchive&) {}
  virtual void serialize(torch::serialize::OutputArchive&) const {}

  // Of an update rule; null for options that a user has written: the rule, its options, these as they are made,
  // and a state without values.
  virtual const retrograd::optim::detail::RuleInfo* rule() const { return nullptr; }
  virtual void* values() { return nullptr; }
  virtual std::unique_ptr<OptimizerOptions> initial() const { return nullptr; }
  virtual std::unique_ptr<detail::RuleParamState> param_state() const { return nullptr; }
};

/// Options of a user's optimizer: clone() by copy.
template <class Derived>
class OptimizerCloneableOptions : public OptimizerOptions {
 public:
  std::unique_ptr<OptimizerOptions> clone() const override {
    return std::make_unique<Derived>(static_cast<const Derived&>(*this));
  }
};

class OptimizerParamGroup {
 public:
  OptimizerParamGroup(std::vector<Tensor> params) : params_(std::move(params)) {}
  OptimizerParamGroup(std::vector<Tensor> params, std::unique_ptr<OptimizerOptions> options)
      : params_(std::move(params)), options_(std::move(options)) {}
  OptimizerParamGroup(const OptimizerParamGroup& other)
      : initial_lr(other.initial_lr),
        params_(other.params_),
        options_(other.options_ ? other.options_->clone() : nullptr) {}
  OptimizerParamGroup(OptimizerParamGroup&&) = default;
  OptimizerParamGroup& operator=(const OptimizerParamGroup&) = delete;
  OptimizerParamGroup& operator=(OptimizerParamGroup&&) = default;

  bool has_options() const { return options_ != nullptr; }
  /// Error(bad_argument) where there are none.
  OptimizerOptions& options() { return checked(); }
  const OptimizerOptions& options() const { return checked(); }
  void set_options(std::unique_ptr<OptimizerOptions> options) { options_ = std::move(options); }
  std::vector<Tensor>& params() { return params_; }
  const std::vector<Tensor>& params() const { return params_; }

  std::optional<double> initial_lr;  ///< before any of the library's schedulers

 private:
  OptimizerOptions& checked() const;

  std::vector<Tensor> params_;
  std::unique_ptr<OptimizerOptions> options_;
};

using ParamGroups = std::vector<OptimizerParamGroup>;

/// The groups of an optimizer, used as the vector. They stay where they are when the optimizer is moved.
class SharedParamGroups {
 public:
  SharedParamGroups() : list_(std::make_shared<ParamGroups>()) {}
  operator ParamGroups&() const { return *list_; }
  ParamGroups* operator->() const { return list_.get(); }
  const std::shared_ptr<ParamGroups>& list() const { return list_; }

  size_t size() const { return list_->size(); }
  auto begin() const { return list_->begin(); }
  auto end() const { return list_->end(); }
  OptimizerParamGroup& operator[](size_t i) const { return (*list_)[i]; }
  OptimizerParamGroup& at(size_t i) const { return list_->at(i); }
  OptimizerParamGroup& front() const { return list_->front(); }
  void push_back(OptimizerParamGroup group) const { list_->push_back(std::move(group)); }

 private:
  std::shared_ptr<ParamGroups> list_;
};

class Optimizer {
 public:
  using LossClosure = std::function<Tensor()>;

  /// Groups without options get the defaults.
  Optimizer(const ParamGroups& groups, std::unique_ptr<OptimizerOptions> defaults);
  Optimizer(std::vector<Tensor> params, std::unique_ptr<OptimizerOptions> defaults)
      : Optimizer(ParamGroups{std::move(params)}, std::move(defaults)) {}
  Optimizer(Optimizer&&) = default;
  Optimizer& operator=(Optimizer&&) = default;
  virtual ~Optimizer() = default;

  /// Updates every parameter that has a gradient. With a closure, calls it first and returns the loss, else an
  /// undefined tensor.
  virtual Tensor step(LossClosure closure = nullptr) = 0;
  void zero_grad(bool set_to_none = true);

  ParamGroups& param_groups() { return param_groups_; }
  const ParamGroups& param_groups() const { return param_groups_; }
  OptimizerOptions& defaults() { return *defaults_; }
  const OptimizerOptions& defaults() const { return *defaults_; }
  /// Error(bad_argument) for options outside their domain or of another optimizer; then nothing is added.
  void add_param_group(const OptimizerParamGroup& group);
  void add_parameters(const std::vector<Tensor>& params) { add_param_group(params); }
  /// Those of the first group.
  std::vector<Tensor>& parameters() { return param_groups_.at(0).params(); }
  const std::vector<Tensor>& parameters() const { return param_groups_.at(0).params(); }
  size_t size() const;  ///< how many tensors

  /// What steps have made for each parameter, by Tensor::unsafeGetTensorImpl(). Tensors share the memory of the
  /// optimizer; counts are those of the last call.
  const ParamStates& state() const { return read_state(); }
  /// State and options: Optimizer of retrograd (optim/optimizer.h). Error(unsupported) for a user's optimizer.
  retrograd::StateDict state_dict() const { return impl().state_dict(); }
  void load_state_dict(const retrograd::StateDict& state) { impl().load_state_dict(state); }
  virtual void save(serialize::OutputArchive& archive) const;
  virtual void load(serialize::InputArchive& archive);

  /// For the library's functions: schedulers, GradScaler.
  operator retrograd::optim::Optimizer&() { return impl(); }

 protected:
  virtual retrograd::optim::Optimizer& impl() const;
  virtual void follow_groups() {}
  virtual const ParamStates& read_state() const { return state_; }

  SharedParamGroups param_groups_;
  std::unique_ptr<OptimizerOptions> defaults_;
  ParamStates state_;  ///< of a user's optimizer

 private:
  OptimizerParamGroup completed(const OptimizerParamGroup& group) const;
};

namespace detail {

/// What a setter takes: betas may be a tuple.
struct Pair : std::array<double, 2> {
  Pair(double first, double second) : array{first, second} {}
  Pair(const std::tuple<double, double>& pair) : Pair(std::get<0>(pair), std::get<1>(pair)) {}
  Pair(const std::array<double, 2>& pair) : array(pair) {}
};
template <class T>
using OptionArgument = std::conditional_t<std::is_same_v<T, std::array<double, 2>>, Pair, T>;

bool are_same_options(const retrograd::optim::detail::RuleInfo& rule, const void* a, const void* b);

/// The options of an update rule; Self, derived from it, adds accessors.
template <class Self_, class Rule>
class RuleOptions : public OptimizerCloneableOptions<Self_> {
 public:
  RuleOptions() = default;
  RuleOptions(double lr) { values_.lr = lr; }
  double get_lr() const override { return values_.lr; }
  void set_lr(double lr) override { values_.lr = lr; }
  const retrograd::optim::detail::RuleInfo* rule() const override;
  void* values() override { return &values_; }
  std::unique_ptr<OptimizerOptions> initial() const override;
  std::unique_ptr<RuleParamState> param_state() const override;
  friend bool operator==(const RuleOptions& a, const RuleOptions& b) {
    return are_same_options(*a.rule(), &a.values_, &b.values_);
  }

 protected:
  using Self = Self_;
  using Values = typename Rule::Options;
  Values& data() { return values_; }
  const Values& data() const { return values_; }

 private:
  Values values_;
};

/// An optimizer of an update rule, without the type of its options.
class RuleOptimizer : public Optimizer {
 public:
  Tensor step(LossClosure closure = nullptr) override;

 protected:
  RuleOptimizer(const ParamGroups& groups, std::unique_ptr<OptimizerOptions> defaults);
  retrograd::optim::Optimizer& impl() const override;
  void follow_groups() override;
  const ParamStates& read_state() const override;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace detail

template <class Options>
class OptimizerOf : public detail::RuleOptimizer {
 public:
  /// Errors: bad_argument for options outside their domain, parameters that are no leaves, not contiguous or listed
  /// twice; dtype_mismatch.
  explicit OptimizerOf(const ParamGroups& groups, Options defaults = {})
      : RuleOptimizer(groups, std::make_unique<Options>(std::move(defaults))) {}
  explicit OptimizerOf(std::vector<Tensor> params, Options defaults = {})
      : OptimizerOf(ParamGroups{std::move(params)}, std::move(defaults)) {}
};

// NAME() and NAME(value), which returns the options.
#define RG_OPTION(NAME)                                                     \
  Self& NAME(const detail::OptionArgument<decltype(Values::NAME)>& value) { \
    data().NAME = value;                                                    \
    return static_cast<Self&>(*this);                                       \
  }                                                                         \
  auto& NAME() { return data().NAME; }                                      \
  const auto& NAME() const { return data().NAME; }
// The options and the optimizer of one update rule, whose state is a NAMEParamState: each names its options.
#define RG_OPTIMIZER(NAME, RULE, ...)                               \
  struct NAME##Options : detail::RuleOptions<NAME##Options, RULE> { \
    using ParamState = NAME##ParamState;                            \
    using RuleOptions::RuleOptions;                                 \
    RG_OPTION(lr) __VA_ARGS__                                       \
  };                                                                \
  using NAME = OptimizerOf<NAME##Options>;

// libtorch's.
RG_OPTIMIZER(SGD, retrograd::ops::SGD,
             RG_OPTION(momentum) RG_OPTION(dampening) RG_OPTION(weight_decay) RG_OPTION(nesterov)
                 RG_OPTION(maximize))
RG_OPTIMIZER(Adam, retrograd::ops::Adam,
             RG_OPTION(betas) RG_OPTION(eps) RG_OPTION(weight_decay) RG_OPTION(amsgrad) RG_OPTION(maximize))
RG_OPTIMIZER(AdamW, retrograd::ops::AdamW,
             RG_OPTION(betas) RG_OPTION(eps) RG_OPTION(weight_decay) RG_OPTION(amsgrad) RG_OPTION(maximize))
RG_OPTIMIZER(Adagrad, retrograd::ops::Adagrad,
             RG_OPTION(lr_decay) RG_OPTION(weight_decay) RG_OPTION(initial_accumulator_value) RG_OPTION(eps)
                 RG_OPTION(maximize))
RG_OPTIMIZER(RMSprop, retrograd::ops::RMSprop,
             RG_OPTION(alpha) RG_OPTION(eps) RG_OPTION(weight_decay) RG_OPTION(momentum) RG_OPTION(centered)
                 RG_OPTION(maximize))
// Others of the library, in the same form.
RG_OPTIMIZER(Adamax, retrograd::ops::Adamax,
             RG_OPTION(betas) RG_OPTION(eps) RG_OPTION(weight_decay) RG_OPTION(maximize))
RG_OPTIMIZER(NAdam, retrograd::ops::NAdam,
             RG_OPTION(betas) RG_OPTION(eps) RG_OPTION(weight_decay) RG_OPTION(momentum_decay)
                 RG_OPTION(decoupled_weight_decay) RG_OPTION(maximize))
RG_OPTIMIZER(RAdam, retrograd::ops::RAdam,
             RG_OPTION(betas) RG_OPTION(eps) RG_OPTION(weight_decay) RG_OPTION(decoupled_weight_decay)
                 RG_OPTION(maximize))
RG_OPTIMIZER(Adadelta, retrograd::ops::Adadelta,
             RG_OPTION(rho) RG_OPTION(eps) RG_OPTION(weight_decay) RG_OPTION(maximize))
RG_OPTIMIZER(Rprop, retrograd::ops::Rprop, RG_OPTION(etas) RG_OPTION(step_sizes) RG_OPTION(maximize))
RG_OPTIMIZER(ASGD, retrograd::ops::ASGD,
             RG_OPTION(lambd) RG_OPTION(alpha) RG_OPTION(t0) RG_OPTION(weight_decay) RG_OPTION(maximize))
RG_OPTIMIZER(Lion, retrograd::ops::Lion, RG_OPTION(betas) RG_OPTION(weight_decay) RG_OPTION(maximize))
RG_OPTIMIZER(Muon, retrograd::optim::MuonRule,
             RG_OPTION(weight_decay) RG_OPTION(momentum) RG_OPTION(nesterov) RG_OPTION(eps)
                 RG_OPTION(ns_steps) RG_OPTION(use_muon) RG_OPTION(adamw_lr) RG_OPTION(adamw_betas))
#undef RG_OPTIMIZER

class LBFGSOptions : public OptimizerCloneableOptions<LBFGSOptions> {
  using Self = LBFGSOptions;
  using Values = retrograd::optim::LBFGSOptions;

 public:
  LBFGSOptions(double lr = 1) { own_.lr = lr; }
  LBFGSOptions(const LBFGSOptions& other) : own_(other.data()) {}
  LBFGSOptions& operator=(const LBFGSOptions& other) {
    data() = other.data();
    return *this;
  }
  double get_lr() const override { return data().lr; }
  void set_lr(double lr) override { data().lr = lr; }
  RG_OPTION(lr)
  RG_OPTION(max_iter)
  RG_OPTION(max_eval)
  RG_OPTION(tolerance_grad)
  RG_OPTION(tolerance_change)
  RG_OPTION(history_size)
  /// "strong_wolfe" or nothing. Error(bad_argument) for another text.
  LBFGSOptions& line_search_fn(const std::optional<std::string>& name);
  std::optional<std::string> line_search_fn() const;
  friend bool operator==(const LBFGSOptions& a, const LBFGSOptions& b);

 private:
  friend class LBFGS;
  Values& data() { return *data_; }
  const Values& data() const { return *data_; }

  Values own_;
  Values* data_ = &own_;  // those of the optimizer, once there is one
};
#undef RG_OPTION

class LBFGS : public Optimizer {
 public:
  /// Error(bad_argument) for more than one group.
  explicit LBFGS(const ParamGroups& groups, LBFGSOptions defaults = {});
  explicit LBFGS(std::vector<Tensor> params, LBFGSOptions defaults = {})
      : LBFGS(ParamGroups{std::move(params)}, std::move(defaults)) {}
  /// Error(bad_argument) without a closure.
  Tensor step(LossClosure closure) override;
  void state() const = delete;  // state_dict() has the state, with Python's names

 protected:
  retrograd::optim::Optimizer& impl() const override;
  void follow_groups() override;
  /// Error(unsupported).
  const ParamStates& read_state() const override;

 private:
  std::shared_ptr<retrograd::optim::LBFGS> impl_;
};

}  // namespace optim
}  // namespace torch
#pragma GCC visibility pop
