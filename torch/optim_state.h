// What optimizers keep for a parameter: the base for optimizers that users write, and the states of update rules, as
// optimizer.state() shows them:
//
//   auto& state = static_cast<torch::optim::AdamParamState&>(*optimizer.state().at(weight.unsafeGetTensorImpl()));
//   state.step();      state.exp_avg().norm();
//
// The state of a rule is a view: its tensors are those of the optimizer, undefined where there is none. It cannot be
// given other tensors or another count; load_state_dict() does that.
#pragma once

#include <memory>
#include <unordered_map>

#include "io/state_dict.h"
#include "torch/types.h"

#pragma GCC visibility push(default)
namespace torch {

namespace serialize {
class OutputArchive;
class InputArchive;
}  // namespace serialize

namespace optim {

/// What a user's optimizer keeps for one parameter.
class OptimizerParamState {
 public:
  virtual ~OptimizerParamState() = default;
  virtual std::unique_ptr<OptimizerParamState> clone() const = 0;
  virtual void serialize(torch::serialize::InputArchive&) {}
  virtual void serialize(torch::serialize::OutputArchive&) const {}
};

/// clone() by copy.
template <class Derived>
class OptimizerCloneableParamState : public OptimizerParamState {
 public:
  std::unique_ptr<OptimizerParamState> clone() const override {
    return std::make_unique<Derived>(static_cast<const Derived&>(*this));
  }
};

/// By Tensor::unsafeGetTensorImpl() of the parameter.
using ParamStates = std::unordered_map<void*, std::unique_ptr<OptimizerParamState>>;

namespace detail {

/// The state of an update rule for one parameter.
class RuleParamState : public OptimizerParamState {
 public:
  int64_t step() const { return step_; }
  /// Equal counts, and equal tensors.
  friend bool operator==(const RuleParamState& a, const RuleParamState& b);

 protected:
  const Tensor& tensor(std::string_view name) const;

 private:
  friend class RuleOptimizer;
  // Takes over the entries "PREFIXname" of an optimizer's state_dict(); false if there are none.
  bool read(const retrograd::StateDict& state, const std::string& prefix);

  retrograd::StateDict tensors_;
  int64_t step_ = 0;
  Tensor none_;
};

/// clone() by copy.
template <class Derived>
class RuleParamStateOf : public RuleParamState {
 public:
  std::unique_ptr<OptimizerParamState> clone() const override {
    return std::make_unique<Derived>(static_cast<const Derived&>(*this));
  }
};

}  // namespace detail

#define RG_STATE(NAME) \
  const Tensor& NAME() const { return tensor(#NAME); }
#define RG_PARAM_STATE(NAME, ...)                                        \
  struct NAME##ParamState : detail::RuleParamStateOf<NAME##ParamState> { \
    __VA_ARGS__                                                          \
  }
RG_PARAM_STATE(SGD, RG_STATE(momentum_buffer));
RG_PARAM_STATE(Adam, RG_STATE(exp_avg) RG_STATE(exp_avg_sq) RG_STATE(max_exp_avg_sq));
RG_PARAM_STATE(AdamW, RG_STATE(exp_avg) RG_STATE(exp_avg_sq) RG_STATE(max_exp_avg_sq));
RG_PARAM_STATE(Adagrad, RG_STATE(sum));
RG_PARAM_STATE(RMSprop, RG_STATE(square_avg) RG_STATE(grad_avg) RG_STATE(momentum_buffer));
RG_PARAM_STATE(Adamax, RG_STATE(exp_avg) RG_STATE(exp_inf));
RG_PARAM_STATE(NAdam, RG_STATE(exp_avg) RG_STATE(exp_avg_sq));
RG_PARAM_STATE(RAdam, RG_STATE(exp_avg) RG_STATE(exp_avg_sq));
RG_PARAM_STATE(Adadelta, RG_STATE(square_avg) RG_STATE(acc_delta));
RG_PARAM_STATE(Rprop, RG_STATE(prev) RG_STATE(step_size));
RG_PARAM_STATE(ASGD, RG_STATE(ax));
RG_PARAM_STATE(Lion, RG_STATE(exp_avg));
RG_PARAM_STATE(Muon, RG_STATE(momentum_buffer) RG_STATE(exp_avg) RG_STATE(exp_avg_sq));
#undef RG_PARAM_STATE
#undef RG_STATE

}  // namespace optim
}  // namespace torch
#pragma GCC visibility pop
