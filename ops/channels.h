// Functions that mix the channels, dim 1 of (batch, channels, spatial...): pixel_shuffle, pixel_unshuffle,
// channel_shuffle, which only rearrange, and local_response_norm. They are made of other ops.
#pragma once

#include "ops/op.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

/// (*, C r^2, H, W) -> (*, C, H r, W r): groups of r^2 channels become squares of pixels. Any dtype. Errors: bad_dim
/// for fewer than 3 dims, bad_argument for r < 1, shape_mismatch unless r^2 divides the channels.
Tensor pixel_shuffle(Operand input, int64_t upscale_factor);
/// The inverse: (*, C, H r, W r) -> (*, C r^2, H, W). Errors likewise; r divides both sizes.
Tensor pixel_unshuffle(Operand input, int64_t downscale_factor);
/// (N, C, *): channel g + groups k becomes channel g (C / groups) + k, read as (groups, C / groups) transposed. Any
/// dtype. Errors: bad_dim for fewer than 3 dims, bad_argument for groups < 1, shape_mismatch unless they divide C.
Tensor channel_shuffle(Operand input, int64_t groups);

/// input / (k + alpha / size s)^beta, s the sum of squares over channels c - size / 2 .. c + (size - 1) / 2, for
/// (N, C, *) with at least 3 dims. Computed in float32 for 16 bits. Errors: bad_dim, bad_argument for size < 1,
/// dtype_mismatch.
Tensor local_response_norm(Operand input, int64_t size, Scalar alpha = 1e-4, Scalar beta = 0.75,
                           Scalar k = 1.0);

}  // namespace retrograd
#pragma GCC visibility pop
