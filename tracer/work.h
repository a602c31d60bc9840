// Work: what an op has to move and to compute, from the types of operands and results alone. A time is held
// against it: bytes a second beside what memory gives, operations a second beside what the processor does.
//
// Each element of an operand is read once and each of a result written once. Operations are the multiplications
// and additions of matrix products, convolutions and attention; other ops have none, since memory limits them.
// Limits: an operand that is read in part (index_select) or repeated (expand) counts in full, contiguous also where
// nothing is copied, and attention as if there were no causal mask. Views, hooks and other bookkeeping move nothing; gradients that are added do.
#pragma once

#include <span>

#include "ir/op.h"

namespace retrograd {

struct Work {
  double bytes = 0, flops = 0;
};

/// Types with sizes that are numbers; of an operand that is missing the dtype is undefined.
double bytes_of(std::span<const TensorType> types);
Work work_of(const OpInfo& op, std::span<const TensorType> operands, std::span<const TensorType> results);

}  // namespace retrograd
