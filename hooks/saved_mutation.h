// AllowMutationOnSavedTensors: in its scope, tensors saved for a backward may be written to in place.
//
//   AllowMutationOnSavedTensors allow;
//   const Tensor y = sum(b * b);
//   b.zero_();                 // the old b is copied now, since y's gradient needs it
//   y.backward();              // 2 b, of the old b
//
// A tensor is copied just before the write, never when it is saved: without a write there is no cost, and what several
// records saved of one memory is copied once, together. What a backward, or a dropped graph, has released is not copied
// any more. It is a pair of saved-tensor hooks: another pair that is opened inside replaces it for what is saved under
// it. As in PyTorch, scopes do not nest, and the backward belongs inside: at the end everything kept is released. It
// notices the writes of this thread by ops and optimizers. A write of another thread is an Error(version_mismatch) at
// the backward, as without the scope; one through raw memory is not noticed.
#pragma once

#include <memory>

#include "engine/saved_tensor_hooks.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

class AllowMutationOnSavedTensors {
 public:
  /// Error(hook_forbidden) inside another one, and where saved-tensor hooks are disabled.
  explicit AllowMutationOnSavedTensors(SourceLocation where = SourceLocation::current());
  ~AllowMutationOnSavedTensors();
  AllowMutationOnSavedTensors(const AllowMutationOnSavedTensors&) = delete;

 private:
  struct State;
  struct Kept;
  class Pair;
  static std::shared_ptr<State> new_state(SourceLocation where);

  std::shared_ptr<State> state_;
  SavedTensorHooksGuard guard_;
  WriteWatcher::Scopes::Guard watch_;
};

}  // namespace retrograd
#pragma GCC visibility pop
