// recompute: pairs of saved-tensor hooks that keep nothing of a tensor but how to recompute it.
//
//   const Tensor u = linear(x), h = gelu(u);
//   {
//     SavedTensorHooksGuard guard(recompute(h, [u] { return gelu(u); }));
//     y = mm(h, w);                  // needs h for its gradient: h is dropped, w is kept
//   }
//   node.register_saved_tensor_hooks(0, recompute([u] { return gelu(u); }));      // or one slot
//
// pack drops the tensor, unpack calls the function: once for each slot and backward, with gradients off and no default
// pair. Only what the closure of the function holds stays in memory; it must not hold the value itself. The result gets
// the strides that the dropped tensor had, so that what is computed from it has the same bits. Of a dropped tensor, its
// type, strides and a hash of its bytes are kept. A function that gives another type, or other bits, is an
// Error(hook_bad_result): an input that was written to in between, or a new random number. Never a silently different
// gradient.
//
// In a recorded function the operations of the function are part of the backward's graph. There is no data to check, so
// only dtype and shape are.
#pragma once

#include <functional>

#include "engine/saved_tensor_hooks.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

enum class RecomputeCheck : uint8_t {
  type,  // dtype and shape: the function gives another value on purpose
  bits,  // also every bit, by a hash
};

/// For one saved tensor: every tensor that the pair is given is dropped, and `function` recomputes it.
RefPtr<SavedTensorHooks> recompute(std::function<Tensor()> function,
                                   RecomputeCheck check = RecomputeCheck::bits,
                                   SourceLocation where = SourceLocation::current());

/// For a scope: `function` recomputes `value`. `value` and views of it are dropped, while it lives and as long as
/// nobody wrote to it; everything else is kept unchanged. The pair does not hold `value`. Error(bad_argument) unless
/// its elements fill a block of memory.
RefPtr<SavedTensorHooks> recompute(const Tensor& value, std::function<Tensor()> function,
                                   RecomputeCheck check = RecomputeCheck::bits,
                                   SourceLocation where = SourceLocation::current());

}  // namespace retrograd
#pragma GCC visibility pop
