// cut: plans that make values again once and keep them, with the least sum of bytes saved and mu times the cost of what
// is made again, for all mu that matter.
//
// Late is what comes after the peak without copies, as in exact.h. Each value that is made before and needed after it
// is saved, for the price of its bytes, or made again, for mu times the cost of its task; then the operands of the task
// are needed, too, and so on. So the price of what several values share is paid once. For one mu the cheapest plan is
// a minimum cut:
//
//   source -> b      infinite        a late task reads block b: it is needed
//   b -> maker(b)    bytes of b      needed, but its task does not run again: saved
//   t -> b           infinite        task t runs again and reads b: it is needed
//   t -> sink        mu * cost of t  task t runs again; infinite where it may not
//
// Only the last ones grow with mu. So plans for rising mu are nested, and the pairs (bytes, cost) are the vertices of a
// convex hull. It is found by subdivision: between two neighbours, mu of the line through them gives a vertex below it,
// or shows that there is none.
//
// A cut counts bytes, not a peak: what is saved before the peak and what is made again after it. So its plans are good
// where cheap values are large, and none for chains of equal layers, whose hull has two vertices (chain.h).
#pragma once

#include "ir/budget/problem.h"

namespace retrograd::inline v0::ir::budget {

/// The plans of at most so many vertices, from those that save most. Never that without copies. `problem`: with tasks.
std::vector<std::vector<Run>> cut_plans(const Problem& problem, size_t most_plans);

}  // namespace retrograd::ir::budget
