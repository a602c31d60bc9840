// The distinct elements of a tensor: unique, unique_consecutive.
//
// How many there are is known only when they have been read, so these run outside of recorded functions. They are made
// of sorts, comparisons and positions, on any device, and have no derivative.
#pragma once

#include <optional>

#include "ops/named_tensors.h"
#include "ops/op.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

/// output: the distinct elements, or slices along the dim. inverse_indices: int64, which one each element is. counts:
/// int64, how often each one occurs. The latter two are undefined unless asked for.
RG_NAMED_TRIPLE(UniqueResult, output, inverse_indices, counts);

/// The distinct elements in ascending order, whatever `sorted` says; with `dim` the distinct slices along it, in the
/// order of their first different elements. The inverse has the input's shape, or [size of dim]. A NaN equals no other.
/// Errors: bad_dim, dtype_mismatch for float8, bad_argument for slices without elements.
UniqueResult unique(Operand input, bool sorted = true, bool return_inverse = false,
                    bool return_counts = false, std::optional<int64_t> dim = {});
/// The same without sorting: of equal neighbours, only the first is kept.
UniqueResult unique_consecutive(Operand input, bool return_inverse = false, bool return_counts = false,
                                std::optional<int64_t> dim = {});

}  // namespace retrograd
#pragma GCC visibility pop
