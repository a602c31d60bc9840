// Runs a span kernel over tensors of any dtype and layout.
#pragma once

#include "cpu/kernels/spans.h"
#include "engine/executor.h"

namespace retrograd::cpu {

/// Applies the kernels `spans` to a call whose operands and output have one shape.
void elementwise(const Call& call, TensorImpl& output, const Spans& spans);
/// Error(bad_argument) when a call on integers would divide by 0.
void refuse_zero_divisors(const Call& call);
/// Copies `from` into `to` (same shape, any layouts), converting the dtype.
void convert_copy(const TensorImpl& from, TensorImpl& to);

}  // namespace retrograd::cpu
