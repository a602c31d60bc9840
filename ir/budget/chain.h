// dp: plans of chains, by a dynamic programme over segments (Beaumont et al., "Optimal checkpointing for heterogeneous
// chains"; for equal layers that of Griewank and Walther).
//
// What comes before the turn of the chain is cut into at most kMostSegments segments, where least passes from one to
// the next; what comes after it, the late tasks, into the part of each segment, last segment first. A *checkpoint* is
// what passes a cut. The programme gives for each row of segments a..b, given the checkpoint at a, and each amount of
// memory the least cost to run their late parts:
//
//   - run a and keep what its late part needs; then a+1..b with so much less memory; then the late part of a
//   - run a..j-1 and keep the checkpoint at j only; then j..b with so much less; then a..j-1 from a, with all of it
//
// So a segment may run as often as it pays, and the checkpoints of long chains are not evenly spaced. Memory counts in
// units, of which the largest cap has kMostUnits at most, rounded up; for caps of a quarter of that the programme is
// solved again with finer ones.
//
// Graphs that are no chains: a block that a late part reads though it passes no cut next to it is *fixed*: made once,
// as is one that may not run again so late. Plans are right whatever the cuts are, since a run reads what was made
// last; only their peaks depend on them. So the programme may estimate: lifetimes within a segment are those without
// copies, and the measure of a plan decides.
//
// Cost: segments^3 * units / 6 additions for each size of unit, some 0.03 s.
#pragma once

#include "ir/budget/problem.h"

namespace retrograd::inline v0::ir::budget {

inline constexpr int32_t kMostSegments = 110;
inline constexpr int32_t kMostUnits = 160;

/// For each cap the plan that the programme holds to be within it, where there is one. Equal ones once. `problem`: with
/// tasks.
std::vector<std::vector<Run>> chain_plans(const Problem& problem, std::span<const int64_t> caps);

}  // namespace retrograd::ir::budget
