// Tensors joined and taken apart by rows, columns and layers, and all combinations of vectors: functions made of cat,
// narrow and expand.
//
// They are for any dtype and device; dtypes of joined tensors are promoted as by cat(). Lists must not be empty:
// Error(bad_argument).
#pragma once

#include "engine/tensor.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

/// Joined along dim 1, or dim 0 for vectors; numbers count as vectors. Errors as for cat(). torch.hstack.
Tensor hstack(const Tensors& tensors, SourceLocation where = SourceLocation::current());
/// Joined along dim 0, of tensors with at least two dims (atleast_2d). Errors as for cat(). torch.vstack.
Tensor vstack(const Tensors& tensors, SourceLocation where = SourceLocation::current());
/// Joined along dim 2, of tensors with at least three dims (atleast_3d). Errors as for cat(). torch.dstack.
Tensor dstack(const Tensors& tensors, SourceLocation where = SourceLocation::current());
/// Joined along dim 1, where numbers and vectors are columns. Errors as for cat(). torch.column_stack.
Tensor column_stack(const Tensors& tensors, SourceLocation where = SourceLocation::current());
/// The matrices along the diagonal of one matrix, zeros elsewhere; a vector counts as a row; no tensors give [1, 0].
/// Error(bad_dim) for more than two dims. torch.block_diag.
Tensor block_diag(const Tensors& tensors, SourceLocation where = SourceLocation::current());
/// (n, k): all combinations of an element of each of k vectors, the last one changing first; a single vector as it is.
/// Errors: bad_dim unless they are vectors, dtype_mismatch for different dtypes. torch.cartesian_prod.
Tensor cartesian_prod(const Tensors& tensors, SourceLocation where = SourceLocation::current());
/// For vectors (or numbers) of n, m, ... elements tensors of shape [n, m, ...] that repeat them along the other dims:
/// views. With indexing "xy" the first two dims are exchanged. Errors: bad_dim for other ranks, dtype_mismatch for
/// different dtypes, bad_argument for another indexing. torch.meshgrid.
Tensors meshgrid(const Tensors& tensors, std::string_view indexing = "ij",
                 SourceLocation where = SourceLocation::current());

/// `sections` parts of a dim as views, of which the first are larger by one if it does not divide the size. Errors:
/// bad_dim (also for a number), bad_argument for less than one section. torch.tensor_split.
Tensors tensor_split(Operand input, int64_t sections, int64_t dim = 0);
/// The parts between `indices`, as slices: one more than there are indices. Error(bad_dim).
Tensors tensor_split(Operand input, const IntArray& indices, int64_t dim = 0);
/// The same by an int64 or int32 tensor on the CPU, which is read: a number of sections, or a vector of indices.
/// Errors: dtype_mismatch, bad_dim for more dims, bad_argument for another device.
Tensors tensor_split(Operand input, const Tensor& indices_or_sections, int64_t dim = 0);
/// tensor_split() of dim 1, or 0 of a vector, into sections of one size. Errors: bad_dim for a number, shape_mismatch
/// where the sections do not divide the size, bad_argument for less than one. torch.hsplit.
Tensors hsplit(Operand input, int64_t sections);
Tensors hsplit(Operand input, const IntArray& indices);
/// The same of dim 0 of a tensor of two dims or more. torch.vsplit.
Tensors vsplit(Operand input, int64_t sections);
Tensors vsplit(Operand input, const IntArray& indices);
/// The same of dim 2 of a tensor of three dims or more. torch.dsplit.
Tensors dsplit(Operand input, int64_t sections);
Tensors dsplit(Operand input, const IntArray& indices);

}  // namespace retrograd
#pragma GCC visibility pop
