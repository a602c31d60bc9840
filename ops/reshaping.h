// Functions that are made of views and products: other names and forms of reshape, transpose and flip, dims added or
// taken apart, and the products of entries kron and vander.
//
// The functions that only change the shape give a view where the memory allows it, for any dtype and device. All are
// differentiable, and the sizes may be symbols.
// Limit: kron takes tensors of up to four dims, since it is a product of twice as many.
#pragma once

#include <optional>

#include "engine/tensor.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

/// All elements in row-major order as one dim: a view of row-major memory, else of a copy. torch.ravel.
Tensor ravel(Operand input);
/// `input` with at least one dim: a number as a vector of one element. torch.atleast_1d.
Tensor atleast_1d(Operand input);
/// `input` with at least two dims: a vector of n elements as [1, n]. torch.atleast_2d.
Tensor atleast_2d(Operand input);
/// `input` with at least three dims: a vector of n elements as [1, n, 1], a matrix [n, m] as [n, m, 1].
/// torch.atleast_3d.
Tensor atleast_3d(Operand input);
/// The same of each tensor.
Tensors atleast_1d(const Tensors& tensors, SourceLocation where = SourceLocation::current());
Tensors atleast_2d(const Tensors& tensors, SourceLocation where = SourceLocation::current());
Tensors atleast_3d(const Tensors& tensors, SourceLocation where = SourceLocation::current());

/// transpose() by NumPy's names. Error(bad_dim). torch.swapaxes, torch.swapdims.
Tensor swapaxes(Operand input, int64_t axis0, int64_t axis1);
Tensor swapdims(Operand input, int64_t dim0, int64_t dim1);
/// movedim() by NumPy's name. Errors as for movedim(). torch.moveaxis.
Tensor moveaxis(Operand input, const IntArray& source, const IntArray& destination);
/// `dim` as several dims of `sizes`, one of which may be -1, which is inferred. Errors: bad_dim; bad_argument for no or
/// negative sizes, shape_mismatch where they do not multiply up to the dim. torch.unflatten.
Tensor unflatten(Operand input, int64_t dim, const IntArray& sizes);
/// view(), reshape() and expand() to the shape of `other`, with their errors. torch.Tensor.view_as, reshape_as,
/// expand_as.
Tensor view_as(Operand input, const Tensor& other);
Tensor reshape_as(Operand input, const Tensor& other);
Tensor expand_as(Operand input, const Tensor& other);

/// Turned by k quarters, from dims[0] towards dims[1]; a copy. Errors: bad_argument unless two dims are given; bad_dim
/// if they are the same or out of range, and for fewer than two dims. torch.rot90.
Tensor rot90(Operand input, int64_t k = 1, const IntArray& dims = {0, 1});
/// flip() of the second dim, or of the first. Error(bad_dim) without such a dim. torch.fliplr, torch.flipud.
Tensor fliplr(Operand input);
Tensor flipud(Operand input);

/// The Kronecker product: for [a, b] and [c, d] of shape [a * c, b * d], blocks of `other` times each element of
/// `input`. Fewer dims are extended in front; dtypes are promoted. Error(unsupported) for more than four dims.
/// torch.kron.
Tensor kron(Operand input, const Tensor& other);
/// (n, N) for a vector of n elements, N = n unless given: its powers from N - 1 down to 0; from 0 up if `increasing`.
/// Of more dims a matrix for each vector along the last one. int64 for integers. Errors: bad_dim for a number,
/// bad_argument for a negative N. torch.vander, torch.linalg.vander.
Tensor vander(Operand x, std::optional<int64_t> N = {}, bool increasing = false);

}  // namespace retrograd
#pragma GCC visibility pop
