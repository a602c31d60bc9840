// Clipping of gradients, in place. Sums are taken in double over chunks of fixed size, in a fixed order: the same bits on any number of
// threads. Parameters without a gradient are passed over.
#pragma once

#include "engine/tensor.h"

namespace retrograd::optim {

/// Scales all gradients together so that their norm is at most max_norm, as PyTorch does: by min(1, max_norm / (norm + 1e-6)). Returns the
/// norm before: (sum |g|^norm_type)^(1/norm_type), for an infinite norm_type the largest |g|.
/// Errors: bad_argument for max_norm < 0, norm_type <= 0, and, with error_if_nonfinite, for a norm that is infinite or nan;
/// dtype_mismatch for gradients that are not float32 or float64.
double clip_grad_norm_(const Tensors& parameters, double max_norm, double norm_type = 2,
                       bool error_if_nonfinite = false, SourceLocation where = SourceLocation::current());

/// Clamps every element of the gradients to [-clip_value, clip_value]. Error(bad_argument) for clip_value < 0.
void clip_grad_value_(const Tensors& parameters, double clip_value,
                      SourceLocation where = SourceLocation::current());

}  // namespace retrograd::optim
