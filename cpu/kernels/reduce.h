// Sums of columns: where the reduced dims are outer ones in memory, whole rows are added to each other.
#pragma once

#include "cpu/kernels/reduce_rows.h"
#include "cpu/kernels/row_access.h"

namespace retrograd::cpu {

/// out = the sum of x over `dims`, divided by `divisor`, if the innermost dim of x is kept and lies in memory
/// without gaps. False, and nothing done, otherwise.
bool sum_columns(const TensorImpl& x, const IntList& dims, double divisor, TensorImpl& out);

}  // namespace retrograd::cpu
