// Elementwise calls and copies on the CPU, over tensors of any dtype and layout.
//
// A span kernel (cpu/kernels/spans.h) knows contiguous float, double or int64_t. What lies so is given to it as
// it is; anything else goes tile by tile into memory of that kind and back, operands that broadcast included.
// So an element is computed by the same instructions wherever it lies.
#pragma once

#include "cpu/kernels/spans.h"
#include "engine/executor.h"

namespace retrograd::cpu {

/// Applies the kernels `spans` to a call whose operands broadcast to the output.
void elementwise(const Call& call, TensorImpl& output, const Spans& spans);
/// Error(bad_argument) when a call on integers would divide by 0.
void refuse_zero_divisors(const Call& call);
/// Copies `from` into `to` (same shape, any layouts), converting the dtype.
void convert_copy(const TensorImpl& from, TensorImpl& to);

}  // namespace retrograd::cpu
