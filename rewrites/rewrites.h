// The rules of the passes `simplify` and `broadcast` (ir/passes/rewrite.h), and the ops of `slopes`. This folder
// knows both graphs and ops; ir/ knows no op, and ops/ no graph.
//
// All rules are exact. What is only nearly so is not done: x + 0 (of -0 it is 0), x - x and x * 0 (NaN,
// infinity), -(a - b), and whatever adds or multiplies in another order. A rule of a new op goes into the
// file of its kind, with a line in the table at its end and a text in tests/rewrites.
#pragma once

#include "ir/passes/pass.h"

namespace retrograd::rewrites {

/// Of arithmetic, conversions and choices; of views and copies; of sums over rows of tables.
std::span<const ir::Rewrite> simplifications();
/// Elementwise ops before the repetition of their operands.
std::span<const ir::Rewrite> broadcasts();

/// Activations that multiply their operand by a function of it, for the pass `slopes`.
std::span<const ir::GatedOps> gated_activations();

/// What the passes are to be given.
inline ir::PassInput all() {
  return {.simplify = simplifications(), .broadcast = broadcasts(), .gated = gated_activations()};
}

}  // namespace retrograd::rewrites
