// The updates of a step: what becomes of a parameter and its state, for which options, numbers and states have been
// found. RuleOptimizer (optim/optimizer.cc) decides which parameters a step has and with what numbers.
//
// - An elementwise rule is one op for all parameters of a step; a composed rule is given all of them together.
// - A parameter of 16 bits is updated as its float32 value (UpdateMode::is_wide) and then rounded. An elementwise rule
//   with master weights does so within its op.
// - A differentiable step writes nothing: it gives the new parameter, and new states.
//
// If an update fails, those before it stay; the error says how many.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "ops/optimizer_steps.h"
#include "optim/param_state.h"

namespace retrograd::inline v0::optim::detail {

/// What the step of a parameter is given: the numbers of an elementwise rule, the factors of a composed one.
void give(const RuleInfo& rule, const StepInputs& inputs, const ParamState& state, std::span<Scalar> out);

/// A step of one parameter by tensor functions, with gradients enabled. Returns the new parameter.
Tensor step_differentiably(const RuleInfo& rule, ParamState& state, const StepInputs& inputs,
                           uint32_t present, SourceLocation where);

class Updates {
 public:
  Updates(const RuleInfo& rule, const Tensor& found_inf, SourceLocation where);
  void add(size_t group, ParamState& state, const StepInputs& inputs, uint32_t present,
           const UpdateMode& mode, std::span<const Scalar> given);
  void run();

 private:
  struct Step {
    ParamState* state;
    StepInputs inputs;
    // Updated in place of the parameter, which is then rounded; undefined: the parameter itself is.
    Tensor wide;
  };

  Tensor wide_param(const ParamState& state, const UpdateMode& mode) const;
  void round(const Step& s) const;
  void done(size_t i);
  void run_composed();

  const RuleInfo& rule_;
  const Tensor found_inf_;
  const SourceLocation where_;
  std::vector<Step> steps_;
  std::optional<ops::UpdateList> elementwise_;
  std::vector<ParamUpdate> composed_;
};

/// The same for updates of temporary float32 values, of which there are those of one parameter at a time.
class UpdatesOneByOne {
 public:
  UpdatesOneByOne(const RuleInfo& rule, const Tensor& found_inf, SourceLocation where)
      : rule_(rule), found_inf_(found_inf), where_(where) {}

  /// add() and run().
  void run(size_t group, ParamState& state, const StepInputs& inputs, uint32_t present,
           const UpdateMode& mode, std::span<const Scalar> given);

 private:
  const RuleInfo& rule_;
  const Tensor found_inf_;
  const SourceLocation where_;
  size_t made_ = 0;
};

}  // namespace retrograd::optim::detail
