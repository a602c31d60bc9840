// Quantiles along a dim: between two neighbours of the sorted elements.
//
// A composition of sort, gather and lerp, so it is differentiable by the input and by q, and traceable.
#pragma once

#include <optional>

#include "ops/op.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

/// The quantiles q (a number, a 0-dim tensor or one dim, in [0, 1]) of the elements along `dim`, or of all: with n
/// elements the one at place q (n - 1) in ascending order. `interpolation` says what is given between two places:
/// "linear", "lower", "higher", "midpoint" or "nearest" (of two, the even place). A q with a dim puts that dim first;
/// the reduced dim is dropped, or has size 1 with keepdim. NaN where there is one. Errors: dtype_mismatch unless the
/// input is float32 or float64 and q of the same dtype; bad_argument for an input without elements, a number q out of
/// range, and another interpolation; bad_dim; index_out_of_range for a tensor q out of range.
Tensor quantile(Operand input, Operand q, std::optional<int64_t> dim = {}, bool keepdim = false,
                std::string_view interpolation = "linear");
/// The same of the elements that are not NaN; NaN where there is none.
Tensor nanquantile(Operand input, Operand q, std::optional<int64_t> dim = {}, bool keepdim = false,
                   std::string_view interpolation = "linear");

}  // namespace retrograd
#pragma GCC visibility pop
