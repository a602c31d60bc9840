// Work: the bytes that an op must move and the operations that it must compute, from the types of operands and
// results alone. Together with a time it yields bytes per second, to compare with the memory bandwidth, and
// operations per second, to compare with the processor's peak.
//
// Each element of an operand is read once and each of a result written once. Operations are the multiplications and
// additions of matrix products, convolutions and attention; other ops have none, since memory limits them. Limits: an
// operand that is read in part (index_select) or repeated (expand) counts in full, contiguous() counts even if
// nothing is copied, and attention counts as if there were no causal mask. Views, hooks and other bookkeeping move
// nothing; accumulated gradients do.
#pragma once

#include <span>

#include "engine/op.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

struct Work {
  double bytes = 0, flops = 0;
};

/// Types with concrete sizes; a missing operand has an undefined dtype.
double bytes_of(std::span<const TensorType> types);
Work work_of(const OpInfo& op, std::span<const TensorType> operands, std::span<const TensorType> results);

}  // namespace retrograd
#pragma GCC visibility pop
