// A line search for the strong Wolfe conditions, as torch.optim.LBFGS has it: bracketing, then zooming by cubic
// interpolation (Nocedal and Wright 2006, algorithms 3.5 and 3.6).
#pragma once

#include <functional>

#include "engine/tensor.h"

namespace retrograd::inline v0::optim::detail {

/// A point of the line.
struct LinePoint {
  double t;  // how far along the direction
  double loss;
  Tensor gradient;
  double slope;  // gradient . direction
};

struct LineSearch {
  LinePoint found;
  int64_t evaluations;
};

/// Searches from `start` (t = 0) with a first step of t. `evaluate` gives the point at a t; `longest` is the largest
/// magnitude of an element of the direction. Ends when the conditions hold with c1 = 1e-4 and c2 = 0.9, when no element
/// would change by 1e-9, or after `most` further evaluations.
LineSearch strong_wolfe(const std::function<LinePoint(double t)>& evaluate, const LinePoint& start, double t,
                        double longest, int64_t most);

/// The minimum of the cubic with the losses and slopes of two points, kept within the bounds; their middle if the cubic
/// has none.
double cubic_minimum(const LinePoint& a, const LinePoint& b, double least, double most);

}  // namespace retrograd::optim::detail
