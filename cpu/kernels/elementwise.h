// Elementwise calls and copies on the CPU, over tensors of any dtype and layout.
//
// A span kernel (cpu/kernels/levels/spans.h) works on contiguous float, double or int64_t. Such operands are passed
// directly; all others, including broadcast operands, are copied tile by tile into such memory and back. So an
// element is computed by the same instructions for every layout.
#pragma once

#include "cpu/kernels/levels/spans.h"
#include "engine/executor.h"

namespace retrograd::inline v0::cpu {

/// Applies the kernels `spans` to a call whose operands broadcast to the output.
void elementwise(const Call& call, TensorImpl& output, const Spans& spans);
/// Error(bad_argument) if a call on integers would divide by 0.
void refuse_zero_divisors(const Call& call);
/// Copies `from` into `to` (same shape, any layouts), converting the dtype.
void convert_copy(const TensorImpl& from, TensorImpl& to);

}  // namespace retrograd::cpu
