// What the live bytes during a run of a graph are held for, step by step. Live bytes are measured; of the values that
// the graph makes, sizes and lifetimes are known.
//
//   before      what was there before the run: parameters, inputs, and in a backward of its own its saved values
//   saved       made by the forward and read by the backward
//   recomputed  not computed from a gradient, but made behind the first gradient
//   gradients   what rules make, and what is computed from it
//   others      all else: temporary values, memory of kernels, memory of an arena that is not in use
//
// Nodes of rules are those with an origin (ir::Origin). Limits: a value that a kernel keeps inside a group is none of
// the graph's; where sizes of the graph exceed what is measured, as where a result is written into memory from outside,
// they are cut off.
#pragma once

#include <array>

#include "tracer/observe/profile.h"

namespace retrograd::inline v0 {

enum class HeldFor : uint8_t { before, saved, recomputed, gradients, others };
inline constexpr std::string_view kHeldFor[] = {"before", "saved", "recomputed", "gradients", "others"};
/// Bytes by HeldFor.
using HeldBytes = std::array<int64_t, std::size(kHeldFor)>;

/// After each step of the run that has ended; the sum is its live bytes.
std::vector<HeldBytes> held_memory(const Profile::Run& run);

}  // namespace retrograd
