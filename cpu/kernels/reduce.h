// What kernels of reductions share with groups that end in one (cpu/fused.h): how an op makes one number of a
// row, and how columns are cut. Sums and products of columns: where the reduced dims are outer ones in memory, whole
// rows are added to each other, or multiplied.
#pragma once

#include "cpu/kernels/reduce_rows.h"
#include "cpu/kernels/row_access.h"

namespace retrograd::cpu {

/// An op that makes one number of each row: what is found in the row's elements, and the number that it
/// gives. `n`: elements of a row.
struct RowValue {
  Reduction kind;
  double (*value)(const Partial<double>& found, int64_t n);
};
/// Of sum, mean, amax and amin of floating elements; null of other ops.
const RowValue* row_value(const OpInfo* op);

/// Adds to `into` what was found in the elements behind it.
void merge_partials(Reduction kind, Partial<double>& into, const Partial<double>& next);

/// How columns are summed: in strips of so many, fewer than kLeastColumns as rows.
inline constexpr int64_t kColumnStrip = 4096, kLeastColumns = 4;
/// Rows of a block, of all columns; the sums of the blocks are added in order.
int64_t column_block(int64_t columns);
/// Of a dtype that is not computed in: rows of a block that are converted and summed on their own, given the
/// columns of the strip.
int64_t column_piece(int64_t columns);

/// out = the sum of x over `dims`, divided by `divisor`, if the innermost dim of x is kept and lies in memory
/// without gaps. False, and nothing done, otherwise.
bool sum_columns(const TensorImpl& x, const IntList& dims, double divisor, TensorImpl& out);
/// The same for products.
bool multiply_columns(const TensorImpl& x, const IntList& dims, TensorImpl& out);

}  // namespace retrograd::cpu
