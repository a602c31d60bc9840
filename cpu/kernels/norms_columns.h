// Normalisation of adjacent rows, such as the columns of a matrix (batch_norm of [N, C]): their elements are read and
// written in memory order, one line of neighbours after the other.
//
// are_columns() tells whether a call is of this kind; it depends only on shape, dims and dtype, so that an operand's
// layout does not change a row's bits. The parts of the computation are functions of RowsDownTable
// (cpu/kernels/levels/softmax_norm_rows.h). Sums are made in T over a block of rows and in double beyond.
#pragma once

#include "cpu/kernels/affine_layout.h"

namespace retrograd::inline v0::cpu {

/// Whether rows of a normalisation along `dim` with result y are adjacent, and have one weight and bias each: then
/// all tensors of y's shape must be row-major.
template <class T>
bool are_columns(const TensorImpl& y, const IntList& dim, const AffineLayout& affine) {
  if (y.dtype() != dtype_of<T>() || affine.count() > 1 || !y.is_contiguous() || y.numel().raw() == 0)
    return false;
  const Rows rows(y, dim);
  const Layout &kept = rows.kept(), &along = rows.along();
  const int last = kept.rank - 1;
  return kept.stride[last] == 1 && kept.size[last] >= 8 && along.rank == 1 && along.stride[0] > 1;
}

/// y, and each row's mean and rstd. weight and bias may be null.
template <class T>
void normalize_columns(const TensorImpl& x, const ops::NormalizeAttrs& attrs, const AffineLayout& affine,
                       const T* weight, const T* bias, const TensorImpl& y, T* mean, T* rstd);

/// dx, and each row's part in the gradients of weight and bias.
template <class T>
void normalize_columns_backward(const TensorImpl& g, const TensorImpl& x, const ops::NormalizeAttrs& attrs,
                                const AffineLayout& affine, const T* mean, const T* rstd, const T* weight,
                                const TensorImpl& dx, T* dweight, T* dbias);

}  // namespace retrograd::cpu
