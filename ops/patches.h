// Windows of pictures as columns, and back: im2col and col2im, each the transpose of the other, which
// nn::functional calls unfold and fold; and pools in an L^p norm. They are made of views and other ops.
#pragma once

#include "ops/op.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

// Lists have one entry for both dims, or two. A window has kernel_size elements that are `dilation` apart; windows
// begin every `stride` elements of a picture with `padding` zeros at both ends of each dim. Errors: bad_dim,
// bad_argument (sizes below 1, a negative padding, a kernel larger than the padded picture, an empty dim other than the
// batch).

/// (N, C, H, W) or (C, H, W) -> (N, C kernel elements, windows) or without N. Any dtype.
Tensor im2col(Operand input, const IntList& kernel_size, const IntList& dilation = 1,
              const IntList& padding = 0, const IntList& stride = 1);
/// (N, C kernel elements, windows) or without N -> (N, C, *output_size): windows added where they came from. Floating.
/// Error(shape_mismatch) if there is another number of windows, or channels that are no multiple of the kernel's.
Tensor col2im(Operand input, const IntList& output_size, const IntList& kernel_size,
              const IntList& dilation = 1, const IntList& padding = 0, const IntList& stride = 1);

/// (sum x^norm_type)^(1 / norm_type) over windows, the largest or smallest |x| if norm_type is infinite; as in PyTorch
/// powers are those of signed elements, so that odd norms of negative sums are nan. Where the sum is 0 the gradient is
/// 0. An incomplete last window (ceil_mode) counts as its mean times the kernel's elements. Operands as for max_pool1d
/// and so on (ops/pooling.h). Error(bad_argument) for norm_type 0, and as there.
Tensor lp_pool1d(Operand input, Scalar norm_type, const IntList& kernel_size, const IntList& stride = {},
                 bool ceil_mode = false);
Tensor lp_pool2d(Operand input, Scalar norm_type, const IntList& kernel_size, const IntList& stride = {},
                 bool ceil_mode = false);
Tensor lp_pool3d(Operand input, Scalar norm_type, const IntList& kernel_size, const IntList& stride = {},
                 bool ceil_mode = false);

}  // namespace retrograd
#pragma GCC visibility pop
