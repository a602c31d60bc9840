// OptimizerInBackward: updates each parameter in the backward, right after its gradient has arrived, and drops the
// gradient. So only about one gradient exists at a time.
//
//   optim::OptimizerInBackward<optim::AdamW> optimizer(net.parameters(), {.lr = 3e-4});
//   cross_entropy(net(x), y).backward();          // updates the parameters; there are no gradients afterwards
//
//   optim::OptimizerInBackward<optim::AdamW> clips(net.parameters(), {.lr = 3e-4}, {.max_norm = 1.0});
//   clips.backward(cross_entropy(net(x), y));     // two passes: the norm of all gradients, then the updates
//
// It is an optimizer of one parameter for each parameter, called by a hook after accumulation. Bits, options,
// schedulers and state_dict() are those of the plain optimizer. Hooks are traceable: a recorded step
// (tracer/function/compile.h) contains the updates, in both passes.
// Clipping by the norm of all gradients needs every gradient before the first update. So with max_norm the backward
// runs twice, and computes each gradient twice instead of keeping it; hooks of the user run twice, too. On the CPU the
// bits are those of clip_grad_norm_() and step().
// Limits: gradients are not added up over several backwards, clip_grad_norm_() and GradScaler come too late (the first
// is an error), and the parameters are fixed. Hooks are removed with this object.
#pragma once

#include <memory>
#include <optional>

#include "optim/clip_grad.h"
#include "optim/optimizer.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::optim {

struct InBackwardOptions {
  std::optional<double> max_norm = {};  ///< at least 0: see clip_grad_norm_
  double norm_type = 2;
};

/// What all optimizers in the backward can do, whatever their algorithm.
class InBackward : public Optimizer {
 public:
  ~InBackward() override;
  InBackward(InBackward&&) noexcept;
  InBackward& operator=(InBackward&&) noexcept;

  using Optimizer::step;
  /// Updates parameters that have a gradient nevertheless, and drops it: after a backward there are none.
  void step(SourceLocation where = SourceLocation::current()) override;
  /// The backward of `loss`, with the updates; `gradient` as of Tensor::backward(). With max_norm: the norm of all
  /// gradients before clipping. Error(bad_argument) with max_norm if a parameter has a gradient already.
  std::optional<GradNorm> backward(const Tensor& loss, const Tensor& gradient = {},
                                   SourceLocation where = SourceLocation::current());
  size_t group_count() const override;
  /// Changed options are those of all parameters of the group; params() may not be changed.
  OptimizerParamGroup param_group(size_t index) override;
  Tensors parameters() const override;
  StateDict state_dict() const override;
  void load_state_dict(const StateDict& state, SourceLocation where = SourceLocation::current()) override;

 protected:
  using CopyOptions = void (*)(void* to, const void* from);
  InBackward(const detail::RuleInfo& rule, CopyOptions copy, const InBackwardOptions& options,
             SourceLocation where);
  /// Begins a group, to which add() adds its parameters in this order. Errors as of OptimizerOf.
  void add_group(const Tensors& params, bool differentiable);
  void add(std::unique_ptr<RuleOptimizer> optimizer, const Tensor& param, void* options);
  RuleOptimizer& optimizer_of(size_t parameter) const;

 private:
  struct Data;
  std::unique_ptr<Data> data_;  // its address is in the hooks
};

/// `Plain`: an optimizer of an update rule (optim/optimizers.h), which LBFGS is not.
template <class Plain>
class OptimizerInBackward final : public InBackward {
 public:
  using Options = typename Plain::Options;
  using Group = typename Plain::Group;

  explicit OptimizerInBackward(const Tensors& params, const Options& options = {},
                               const InBackwardOptions& in_backward = {},
                               SourceLocation where = SourceLocation::current())
      : OptimizerInBackward(std::vector<Group>{{params, options}}, in_backward, where) {}
  /// Errors: those of Plain; bad_argument for max_norm < 0, norm_type <= 0, a group without parameters, or one that is
  /// differentiable.
  explicit OptimizerInBackward(const std::vector<Group>& groups, const InBackwardOptions& in_backward = {},
                               SourceLocation where = SourceLocation::current())
      : InBackward(rule_of(static_cast<const Plain*>(nullptr)), copy_options, in_backward, where) {
    for (const Group& group : groups) {
      add_group(group.params, group.differentiable);
      for (const Tensor& param : group.params) {
        Group of_one = group;
        of_one.params = {param};
        auto plain = std::make_unique<Plain>(std::vector<Group>{of_one}, where);
        Options& options = plain->param_groups()[0].options;
        add(std::move(plain), param, &options);
      }
    }
  }

  /// The optimizer of one parameter, by its number in parameters().
  Plain& optimizer(size_t parameter) const { return static_cast<Plain&>(optimizer_of(parameter)); }

 private:
  template <class Rule>
  static const detail::RuleInfo& rule_of(const OptimizerOf<Rule>*) {
    return detail::rule_info<Rule>;
  }
  static void copy_options(void* to, const void* from) {
    *static_cast<Options*>(to) = *static_cast<const Options*>(from);
  }
};

}  // namespace retrograd::optim
#pragma GCC visibility pop
