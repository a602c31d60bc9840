// The rules of the passes `simplify` and `broadcast` (ir/passes/rewrite.h), and the ops of `gated_derivatives`. This
// folder knows both graphs and ops; ir/ knows no op, and ops/ no graph.
//
// All rules are exact. Rules that are only nearly exact are not used: x + 0 (of -0 it is 0), x - x and x * 0 (NaN,
// infinity), -(a - b), and anything that adds or multiplies in another order. A rule for a new op goes into the file of
// its kind, with a line in the table at its end and a text in tests/rewrites.
#pragma once

#include "ir/passes/pass.h"

namespace retrograd::inline v0::rewrites {

/// For arithmetic, conversions and selections; for views and copies; for sums over rows of tables.
std::span<const ir::Rewrite> simplifications();
/// Elementwise ops before the broadcast of their operands.
std::span<const ir::Rewrite> broadcasts();

/// Activations that multiply their operand by a function of it, for the pass `gated_derivatives`.
std::span<const ir::GatedOps> gated_activations();

/// The input of the passes.
inline ir::PassInput all() {
  return {.simplify = simplifications(), .broadcast = broadcasts(), .gated = gated_activations()};
}

}  // namespace retrograd::rewrites
