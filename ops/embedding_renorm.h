// Rows of a table kept within a norm, where they are looked up.
#pragma once

#include "ops/op.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

/// Scales each row of `weight` [rows, width] that `indices` (int64 or int32, any shape) name to a norm of at most
/// max_norm, in place and without a record: rows beyond it are multiplied by max_norm / (norm + 1e-7). Returns weight.
/// norm_type as in vector_norm. Errors: bad_dim, dtype_mismatch, index_out_of_range, bad_argument for a max_norm that
/// is not positive.
const Tensor& embedding_renorm_(const Tensor& weight, const Tensor& indices, double max_norm,
                                double norm_type = 2, SourceLocation where = SourceLocation::current());

}  // namespace retrograd
#pragma GCC visibility pop
