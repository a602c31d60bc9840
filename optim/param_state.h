// ParamState: what an optimizer keeps of a parameter; how it is made, saved and loaded.
//
// Steps are counted on the host, and with them the numbers that some rules carry from step to step (ops::Progress). A
// recorded function reads the numbers of its steps before each run and reports afterwards which it has made: until then
// they are `ahead`.
#pragma once

#include <optional>

#include "optim/rule_info.h"
#include "optim/saved_values.h"

namespace retrograd::inline v0::optim::detail {

struct ParamState {
  Tensor param;                            // its address is the key
  int64_t step = 0;                        // the number of steps done
  Kept kept{};                             // after these:
  double kept_at = 0;                      // the step that gave them
  int64_t ahead = 0;                       // further steps whose numbers recorded functions have read
  Kept kept_ahead{};                       // after these
  std::array<Tensor, kMostStates> states;  // undefined: not made
  Tensor master;                           // the parameter in float32; undefined: not kept
  int64_t replaced = 0;                    // how many times other tensors took the place of these

  ParamState(const RuleInfo& rule, const void* options, const Tensor& param);
  /// Makes what the options and the mode require and converts what has another dtype: not recorded, and without a history
  /// unless for differentiable steps.
  void make(const RuleInfo& rule, const void* options, const UpdateMode& mode);
  /// Of the next step, or of that after further steps.
  StepInputs next(const RuleInfo& rule, const void* options, int64_t further = 0) const;
  /// Of the step after those that are ahead, which then includes it.
  StepInputs read_ahead(const RuleInfo& rule, const void* options);
  /// A step ahead was made, with these inputs, or was not. Later ones are settled first.
  void settle(const RuleInfo& rule, const StepInputs& inputs, bool was_made);
  /// A step has been made with these inputs.
  void advance(const RuleInfo& rule, const StepInputs& inputs);

  bool is_filled(const RuleInfo& rule) const { return rule.is_filled(step, kept.data()); }
};

/// Error(bad_argument) for modes that exclude each other, Error(dtype_mismatch) for one that the parameter cannot have.
void check_mode(const UpdateMode& mode, const Tensor& param, std::string_view optimizer,
                SourceLocation where);
/// Error unless each is contiguous, of a dtype that can be updated, a leaf but in `differentiable` steps, and listed once.
void check_params(const Tensors& params, std::string_view optimizer, SourceLocation where,
                  const std::vector<bool>& differentiable = {});
/// Error(bad_argument) for an option outside its domain.
void check_options(const RuleInfo& rule, void* options, SourceLocation where);

/// Adds the state of parameter `index` to the dictionary. A state in which no step was counted yet is left out.
void save_state(StateDict& out, size_t index, const RuleInfo& rule, const ParamState& state);

/// Adds the options of group `index`, as "param_groups.<index>.<name>".
void save_options(StateDict& out, size_t index, const RuleInfo& rule, void* options,
                  const std::optional<double>& initial_lr);
/// Takes them out of a saved state; those that are not there stay as they are. Error(bad_argument) for wrong ones.
void take_options(SavedValues& saved, size_t index, const RuleInfo& rule, void* options,
                  std::optional<double>& initial_lr);

/// The state of one parameter from a dictionary.
struct LoadedState {
  std::array<Tensor, kMostStates> states;
  Tensor master;
  int64_t step = 0;
  std::optional<Kept> kept;

  bool has_states() const;
};
/// Errors: bad_argument, shape_mismatch, dtype_mismatch.
LoadedState take_state(SavedValues& saved, size_t index, const RuleInfo& rule, const ParamState& now);
/// States keep their memory, so a recorded step continues with them.
void take_over(ParamState& now, const LoadedState& loaded, const RuleInfo& rule, const void* options);

}  // namespace retrograd::optim::detail
