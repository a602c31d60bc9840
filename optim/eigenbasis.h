// Orthonormal bases of square matrices, which SOAP (optim/soap.h) rotates parameters by: two ops that run on the host,
// where Eigen decomposes the matrix. A matrix of a device is copied there and back, for which the host waits.
//
// Columns are determined up to their sign, and those of equal eigenvalues up to a rotation. A matrix that is not finite
// gives nan. Limits: float32 and float64; one matrix, one thread; no derivative, the bases count as constants.
#pragma once

#include "ops/op.h"

namespace retrograd::inline v0::optim::detail {

/// Eigenvectors of a symmetric (n, n), of which the lower triangle is read, as columns: those of the largest
/// eigenvalues first. Errors: shape_mismatch, dtype_mismatch.
Tensor eigenvectors(const Tensor& symmetric, SourceLocation where);
/// The Q of A = Q R, of an (n, n). Errors: shape_mismatch, dtype_mismatch.
Tensor orthonormal_columns(const Tensor& matrix, SourceLocation where);

}  // namespace retrograd::optim::detail
