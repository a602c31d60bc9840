// Recomputation by policy: in a scope, a policy decides for the results of each op whether a backward finds them saved,
// or computes them again from what is saved (graph-based activation checkpointing).
//
//   {
//     RecomputeScope scope(policies::save_matrix_products());
//     y = block(x);
//   }
//
// Unlike with checkpoint(), a backward runs only the calls that lead to the values that it asks for, one after the
// other, and drops each result after its last use. A saved result is kept only if a record saves it, or a result that
// is recomputed depends on it.
//
// Scopes nest: an inner scope adds its policy. From the outermost to the innermost policy, later answers replace
// earlier ones, except that MUST beats PREFER; must_save and must_recompute for one call are an
// Error(bad_argument). Before any policy the answer is prefer_save.
//
// Long scopes: what is recomputed at a time is limited by keeping some values in between. For n values of equal size,
// about the square root of 2 n are kept, and as many are recomputed at a time.
//
// A scope ends with its object. Tensors of the scope may be used after it.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/saved_tensor_hooks.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

/// PyTorch: torch.utils.checkpoint.CheckpointPolicy.
enum class CheckpointPolicy : uint8_t { must_save, prefer_save, must_recompute, prefer_recompute };

/// What a policy answers for the results of a call.
struct PolicyAnswer {
  /// true: must_save, false: prefer_recompute (PyTorch).
  PolicyAnswer(bool saves)
      : policy(saves ? CheckpointPolicy::must_save : CheckpointPolicy::prefer_recompute) {}
  PolicyAnswer(CheckpointPolicy p) : policy(p) {}
  /// The results are kept as this pair packs them: save_on_cpu() offloads, half_precision() compresses.
  static PolicyAnswer pack_with(RefPtr<SavedTensorHooks> pair);

  CheckpointPolicy policy;
  RefPtr<SavedTensorHooks> pair = {};
};

/// A call whose results a policy decides about.
struct PolicyCall {
  std::string_view op;      // its name in docs/ops.md; "checkpoint_name" for checkpoint_name()
  std::string_view name;    // given by checkpoint_name(); else empty
  const Tensors& operands;  // undefined for those that are numbers
  const Tensors& results;
  SourceLocation where;  // in user code
  int64_t bytes_kept;    // so far by the scope
};

/// Must not compute with the tensors. What it reads besides decides once, in the forward pass.
using RecomputePolicy = std::function<PolicyAnswer(const PolicyCall&)>;

namespace policies {
/// prefer_recompute for all results.
RecomputePolicy recompute_all();
/// must_save for all results: as without a scope.
RecomputePolicy must_save_all();
/// prefer_save for the results of mm, bmm, addmm, matmul, linear, convolutions and attention; prefer_recompute for all
/// else.
RecomputePolicy save_matrix_products();
/// must_save for values that have one of these names (checkpoint_name), prefer_recompute for all else.
RecomputePolicy save_names(std::initializer_list<std::string> names);
/// The same, packed by the pair.
RecomputePolicy offload_names(std::initializer_list<std::string> names, RefPtr<SavedTensorHooks> pair);
}  // namespace policies

namespace detail {
class RecomputeStack;
}

/// A scope, on the thread that made it.
class RecomputeScope {
 public:
  explicit RecomputeScope(RecomputePolicy policy, SourceLocation where = SourceLocation::current());
  ~RecomputeScope();
  RecomputeScope(const RecomputeScope&) = delete;

 private:
  std::shared_ptr<detail::RecomputeStack> stack_;  // null: gradients were off
  size_t place_ = 0;                               // in the stack
};

/// Names a value for the policies around it. Returns `x`.
const Tensor& checkpoint_name(const Tensor& x, std::string_view name,
                              SourceLocation where = SourceLocation::current());

}  // namespace retrograd
#pragma GCC visibility pop
