// Converts tensors to the sides of row kernels, and divides rows: see cuda/kernels/rows_call.h.
#pragma once

#include "cuda/kernels/rows_call.h"
#include "engine/op.h"

namespace retrograd::inline v0::cuda {

/// `x` broadcast to `shape` (the last dims are its own), in rows along the dims of the mask. Null gives a side without
/// data.
RowSide row_side(const TensorImpl* x, const Shape& shape, uint64_t along);
/// `x` with its own shape.
RowSide row_side(const TensorImpl& x, uint64_t along);
/// The same for an operand whose dims correspond to the dims `own` of `shape`, and which is repeated along all others.
RowSide row_side(const TensorImpl* x, const IntList& own, const Shape& shape, uint64_t along);

/// How the rows of `side` are divided; `most_splits` 1 for kernels that do not split rows.
RowCut cut_rows(const RowSide& side, int64_t most_splits);

uint64_t mask_of(const IntList& dims);

}  // namespace retrograd::cuda
