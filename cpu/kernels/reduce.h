// The common part of reduction kernels and of groups that end in a reduction (cpu/fused/fused.h): how an op computes
// one number from a row, and how columns are cut.
//
// Sums and products of columns (cpu/kernels/reduce_columns.cc): where the reduced dims are outer ones in memory,
// whole rows are added to each other, or multiplied. All other reductions go by rows (cpu/kernels/row_reducer.h). A
// fused group cuts rows and columns as these kernels do, so that it returns the same bits.
#pragma once

#include "cpu/kernels/levels/reduce_rows.h"
#include "cpu/kernels/row_access.h"

namespace retrograd::inline v0::cpu {

/// An op that computes one number from each row: the reduction of the row's elements, and the number computed from
/// it. `n`: elements of a row.
struct RowValue {
  Reduction kind;
  double (*value)(const Partial<double>& found, int64_t n);
};
/// For sum, mean, amax and amin of floating elements; null for other ops.
const RowValue* row_value(const OpInfo* op);

/// Adds to `into` what was found in the elements after it.
void merge_partials(Reduction kind, Partial<double>& into, const Partial<double>& next);

/// Columns are summed in strips of kColumnStrip; fewer than kLeastColumns are summed as rows.
inline constexpr int64_t kColumnStrip = 4096, kLeastColumns = 4;
/// Rows of a block, of all columns; the sums of the blocks are added in order.
int64_t column_block(int64_t columns);
/// Of a dtype that is not computed in: rows of a block that are converted and summed on their own, given the
/// columns of the strip.
int64_t column_piece(int64_t columns);

/// out = the sum of x over `dims`, divided by `divisor`, if the innermost dim of x is kept and contiguous in memory.
/// Otherwise returns false, with nothing done.
bool sum_columns(const TensorImpl& x, const IntList& dims, double divisor, TensorImpl& out);
/// The same for products.
bool multiply_columns(const TensorImpl& x, const IntList& dims, TensorImpl& out);

}  // namespace retrograd::cpu
