// recompute: pairs of saved-tensor hooks that keep nothing of a tensor but how to make it again.
//
//   const Tensor u = linear(x), h = gelu(u);
//   {
//     SavedTensorHooksGuard guard(recompute(h, [u] { return gelu(u); }));
//     y = mm(h, w);                  // needs h for its gradient: h goes, w stays as it is
//   }
//   node.register_saved_tensor_hooks(0, recompute([u] { return gelu(u); }));      // or one slot
//
// pack drops the tensor, unpack calls the function: once for each slot and backward, with gradients off and
// no default pair. What the function uses is held by its closure and is all that stays in memory; it must not
// hold the value itself. The result gets the strides that the dropped tensor had, so that what is computed
// from it has the same bits. Kept of a dropped tensor: type, strides, and a hash of its bytes. A function
// that gives another type, or other bits, is an Error(hook_bad_result): an input that was written to in
// between, a random number drawn anew. Never a silently different gradient.
#pragma once

#include <functional>

#include "hooks/saved_tensor_hooks.h"

namespace retrograd {

enum class RecomputeCheck : uint8_t {
  type,  // dtype and shape: the function gives another value on purpose
  bits,  // also every bit, by a hash
};

/// For one saved tensor: every tensor that the pair is given is dropped, and `function` makes it.
RefPtr<SavedTensorHooks> recompute(std::function<Tensor()> function,
                                   RecomputeCheck check = RecomputeCheck::bits,
                                   SourceLocation where = SourceLocation::current());

/// For a scope: `function` makes `value`. Dropped are `value` and views of it, while it lives and as long as
/// nobody wrote to it; everything else is left as it is. The pair does not hold `value`. Error(bad_argument)
/// unless its elements fill a block of memory.
RefPtr<SavedTensorHooks> recompute(const Tensor& value, std::function<Tensor()> function,
                                   RecomputeCheck check = RecomputeCheck::bits,
                                   SourceLocation where = SourceLocation::current());

}  // namespace retrograd
