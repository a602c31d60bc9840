// Optimizer: parameter groups, their options, and the state of an algorithm for each parameter.
//
//   optim::AdamW optimizer(model.parameters(), {.lr = 3e-3});
//   optim::SGD optimizer({{weights, {.lr = 0.1, .momentum = 0.9}}, {biases, {.lr = 0.1}}});
//
//   Optimizer       what all optimizers can do, whatever their algorithm
//   RuleOptimizer   an optimizer of an update rule (ops/optimizers/rule.h)
//   OptimizerOf     the same with the type of the rule's options; optim/optimizers.h lists them
//
// Data: groups of {params, options}, and a ParamState for each parameter, found by the tensor.
// A step is an op for each parameter that has a gradient (ops/optimizer_steps.h), so it can be recorded
// (tracer/function/compile.h). Steps of parameters with the same numbers are done together: one pass over the memory of
// all, divided among the threads.
// A parameter's step is counted when it has been computed. So a step that fails, in eager mode or in a recorded
// function, leaves parameters, state and counts unchanged; if some parameters had been updated before, the error says
// how many.
// State is made with the optimizer, except for parameters that require no gradient. So the first step needs no more
// memory than later ones, and a lack of memory shows before training.
// A parameter without a gradient is skipped, including its state, as in PyTorch; so parameters may be frozen. The
// options and parameters in param_groups() may be changed between steps. A parameter keeps its state in any group, and
// also while it is in none; a new one begins without state. A recorded step follows such changes, if necessary by
// another recording. It does not keep the optimizer alive: a run without it is an error. A copy has the same
// parameters, and state of its own.
// Limits: parameters are float32, float64, bfloat16 or float16 and contiguous; the optimizer writes their memory. State
// has the parameter's dtype unless a group says otherwise (ParamGroup). Only one thread at a time may use an optimizer; two that step it at the same time are an
// error.
// Start reading at RuleOptimizer::step in optim/optimizer.cc, then a rule, ops/optimizers/sgd.h.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "engine/recording.h"
#include "io/state_dict.h"
#include "optim/rule_info.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::optim {

/// Computes the loss and its gradients.
using LossClosure = std::function<Tensor()>;

/// A group of any optimizer. It refers to the optimizer, and is valid until groups are added or removed.
class OptimizerParamGroup {
 public:
  using Visit = void (*)(void* options, detail::OptionVisitor&);
  OptimizerParamGroup(std::string_view optimizer, Tensors& params, std::optional<double>& initial_lr,
                      void* options, Visit visit)
      : optimizer_(optimizer), params_(&params), initial_lr_(&initial_lr), options_(options), visit_(visit) {}

  Tensors& params() const { return *params_; }
  /// The options, under PyTorch's names: numbers ("lr", "betas" has two) and flags, which are 0 or 1.
  std::vector<std::string_view> option_names() const;
  bool has_option(std::string_view name) const;
  /// Number `index` of an option. Error(bad_argument) for an option that the optimizer does not have.
  double option(std::string_view name, size_t index = 0) const;
  void set_option(std::string_view name, double value, size_t index = 0) const;
  double lr() const { return option("lr"); }
  void set_lr(double lr) const { set_option("lr", lr); }
  /// The learning rate before any scheduler (optim/lr_scheduler.h), once there is one.
  std::optional<double>& initial_lr() const { return *initial_lr_; }

 private:
  double access(std::string_view name, size_t index, const double* value) const;

  std::string_view optimizer_;
  Tensors* params_;
  std::optional<double>* initial_lr_;
  void* options_;
  Visit visit_;
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  /// Updates every parameter that has a gradient. Error(bad_argument) for options outside their domain.
  virtual void step(SourceLocation where = SourceLocation::current()) = 0;
  /// Calls the closure with gradients enabled, then steps. Returns the loss.
  virtual Tensor step(const LossClosure& closure, SourceLocation where = SourceLocation::current());
  /// A step that changes and counts nothing where `found_inf`, a float32 number, is not 0 when it runs: GradScaler.
  /// `found_inf` keeps its value until the next step. Error(unsupported) for an optimizer without such steps.
  virtual void step_unless(const Tensor& found_inf, SourceLocation where = SourceLocation::current());
  virtual size_t group_count() const = 0;
  /// Error(bad_argument) if there is no such group.
  virtual OptimizerParamGroup param_group(size_t index) = 0;
  virtual Tensors parameters() const = 0;
  /// The state, as "<number of the parameter>.<PyTorch's name>": tensors that share the memory of the optimizer, and
  /// "step" as int64; and the options, as "param_groups.<number of the group>.<PyTorch's name>".
  virtual StateDict state_dict() const = 0;
  /// Takes over a copy of a saved state, PyTorch's too: that of its SGD has no "step". Parameters without an entry begin
  /// anew, options without one stay. After an error nothing has changed: bad_argument for a key that does not belong here,
  /// for moments without "step", or for options outside their domain; shape_mismatch, dtype_mismatch.
  virtual void load_state_dict(const StateDict& state, SourceLocation where = SourceLocation::current()) = 0;

  /// The learning rate of all groups.
  void set_lr(double lr);
  /// Drops the gradients of all parameters, or fills them with zeros.
  void zero_grad(bool set_to_none = true);

 protected:
  Optimizer() = default;
  Optimizer(const Optimizer&) = default;
  Optimizer& operator=(const Optimizer&) = default;
};

/// Parameters with options of their own.
template <class Options>
struct ParamGroup {
  Tensors params;
  Options options = {};
  std::optional<double> initial_lr = {};  ///< before any scheduler, once there is one
  /// A step is a function of parameters, gradients and state that can be differentiated, where these have a history. It
  /// writes to nothing: the group has new tensors in `params` afterwards. Parameters need not be leaves. Not recorded, since
  /// numbers would be constants.
  bool differentiable = false;
  /// For parameters of 16 bits; others are updated as without these. The state is float32, and:
  /// A step updates float32 values of the parameters, which the optimizer keeps ("master_param" in its state_dict()), and
  /// rounds them. What else writes a parameter is followed: see ops/optimizer_steps.h.
  bool master_weights = false;
  /// A step computes in float32 and rounds the result at random, right on average (stochastic_round()): small changes are
  /// not lost, without memory for them. bfloat16 only.
  bool stochastic_rounding = false;
};

namespace detail {

/// Drops the gradients of parameters, or fills them with zeros.
void zero_gradients(const Tensors& params, bool set_to_none);

/// The groups of an optimizer, without the type of their options.
class Groups {
 public:
  virtual ~Groups() = default;
  virtual size_t size() const = 0;
  virtual Tensors& params(size_t group) = 0;
  virtual void* options(size_t group) = 0;
  virtual std::optional<double>& initial_lr(size_t group) = 0;
  virtual UpdateMode mode(size_t group) const = 0;
  virtual std::unique_ptr<Groups> copy() const = 0;
  virtual std::unique_ptr<Groups> none() const = 0;
  virtual void remove(size_t group) = 0;
  /// Takes over those of the same type.
  virtual void assign(const Groups& other) = 0;
};

template <class Options>
struct GroupsOf final : Groups {
  explicit GroupsOf(std::vector<ParamGroup<Options>> groups) : list(std::move(groups)) {}
  size_t size() const override { return list.size(); }
  Tensors& params(size_t group) override { return list[group].params; }
  void* options(size_t group) override { return &list[group].options; }
  std::optional<double>& initial_lr(size_t group) override { return list[group].initial_lr; }
  UpdateMode mode(size_t group) const override {
    return {list[group].differentiable, list[group].master_weights, list[group].stochastic_rounding};
  }
  std::unique_ptr<Groups> copy() const override { return std::make_unique<GroupsOf>(list); }
  std::unique_ptr<Groups> none() const override {
    return std::make_unique<GroupsOf>(std::vector<ParamGroup<Options>>());
  }
  void assign(const Groups& other) override { list = static_cast<const GroupsOf&>(other).list; }
  void remove(size_t group) override { list.erase(list.begin() + static_cast<ptrdiff_t>(group)); }

  std::vector<ParamGroup<Options>> list;
};

struct OptimizerData;

}  // namespace detail

class RuleOptimizer : public Optimizer {
 public:
  using Optimizer::step;
  void step(SourceLocation where = SourceLocation::current()) override { update({}, where); }
  void step_unless(const Tensor& found_inf, SourceLocation where = SourceLocation::current()) override;
  size_t group_count() const override;
  OptimizerParamGroup param_group(size_t index) override;
  Tensors parameters() const override;
  StateDict state_dict() const override;
  void load_state_dict(const StateDict& state, SourceLocation where = SourceLocation::current()) override;
  /// The parameters keep their state. Error(bad_argument) if there is no such group.
  void remove_param_group(size_t index, SourceLocation where = SourceLocation::current());

  RuleOptimizer(const RuleOptimizer& other);
  RuleOptimizer& operator=(const RuleOptimizer& other);
  /// The moved-from optimizer has no parameters.
  RuleOptimizer(RuleOptimizer&& other);
  RuleOptimizer& operator=(RuleOptimizer&& other);

 protected:
  RuleOptimizer(const detail::RuleInfo& rule, std::unique_ptr<detail::Groups> groups, SourceLocation where);
  detail::Groups& any_groups() const;
  /// Checks groups that have changed, and makes the state of new parameters.
  void follow_groups(SourceLocation where);

 private:
  void update(const Tensor& found_inf, SourceLocation where);

  // On the heap, so that its address is the same when the optimizer is moved: recorded steps refer to it.
  std::shared_ptr<detail::OptimizerData> data_;
};

template <class Rule>
class OptimizerOf : public RuleOptimizer {
 public:
  using Options = typename Rule::Options;
  using Group = ParamGroup<Options>;

  explicit OptimizerOf(const Tensors& params, const Options& options = {},
                       SourceLocation where = SourceLocation::current())
      : OptimizerOf(std::vector<Group>{{params, options}}, where) {}
  /// Errors: bad_argument for options outside their domain, no parameter, one that is undefined, no leaf, not
  /// contiguous, or listed twice; dtype_mismatch.
  explicit OptimizerOf(std::vector<Group> groups, SourceLocation where = SourceLocation::current())
      : RuleOptimizer(detail::rule_info<Rule>, std::make_unique<detail::GroupsOf<Options>>(std::move(groups)),
                      where) {}

  std::vector<Group>& param_groups() { return typed().list; }
  const std::vector<Group>& param_groups() const { return typed().list; }

  /// Errors as of the constructor; then nothing is added.
  void add_param_group(Group group, SourceLocation where = SourceLocation::current()) {
    param_groups().push_back(std::move(group));
    try {
      follow_groups(where);
    } catch (...) {
      param_groups().pop_back();
      throw;
    }
  }

 private:
  detail::GroupsOf<Options>& typed() const { return static_cast<detail::GroupsOf<Options>&>(any_groups()); }
};

}  // namespace retrograd::optim
#pragma GCC visibility pop
