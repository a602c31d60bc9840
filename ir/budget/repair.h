// repair: plans of the kind that exact.h searches, found by choices that are made and taken back.
//
// It begins without copies. While some run holds more than the cap, it makes one more candidate again before its late
// uses: that which takes off most of the bytes above the cap, over all runs, for its cost. Then each choice that the
// others have made unnecessary is taken back, the dearest first. The next cap begins with these choices.
//
// A choice is judged by the measure of the plan with it, which takes a time in proportion to its runs. So a plan takes
// that times the square of the candidates: meant for up to some tens of them, where it is close to the exact plan.
#pragma once

#include "ir/budget/problem.h"

namespace retrograd::inline v0::ir::budget {

/// A plan within each of the caps, which fall, up to the first for which it finds none.
std::vector<std::vector<Run>> repaired_plans(const Problem& problem, std::span<const int64_t> caps);

}  // namespace retrograd::ir::budget
