// Differences of neighbours along a dim, and integrals by the trapezoidal rule.
//
// Compositions of views and elementwise ops. 16-bit floats are computed in float32 and rounded once.
#pragma once

#include "ops/op.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

/// x[i+1] - x[i] along `dim`, n times; of bool whether they differ. Before that `prepend` and `append` are joined to
/// the ends, which have the input's shape except for that dim. Errors: bad_argument for n < 0, bad_dim, shape_mismatch.
Tensor diff(Operand input, int64_t n = 1, int64_t dim = -1, const Tensor& prepend = {},
            const Tensor& append = {});

/// The sum of (y[i] + y[i+1]) / 2 times the distance of the two points, along `dim`: dx, or that of the entries of `x`,
/// which has one dim, or any shape that broadcasts with y's, and y's size along `dim`. 0 for fewer than two points.
/// Integers give float32. Errors: bad_dim, shape_mismatch, dtype_mismatch for bool.
Tensor trapezoid(Operand y, Scalar dx = 1, int64_t dim = -1);
Tensor trapezoid(Operand y, const Tensor& x, int64_t dim = -1);
/// The same sums up to each point but the first.
Tensor cumulative_trapezoid(Operand y, Scalar dx = 1, int64_t dim = -1);
Tensor cumulative_trapezoid(Operand y, const Tensor& x, int64_t dim = -1);

}  // namespace retrograd
#pragma GCC visibility pop
