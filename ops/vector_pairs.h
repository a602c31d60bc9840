// Functions of pairs of vectors, which are the rows along the last dim of two tensors: bilinear, pairwise_distance.
// They are made of other ops, in float32 for 16 bits, and rounded once.
#pragma once

#include "ops/op.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

/// input1 (*, in1), input2 (*, in2), weight (out, in1, in2), bias (out) -> (*, out): x1^T weight[o] x2 + bias[o]. The
/// leading dims are equal. Errors: bad_dim (ranks), shape_mismatch, dtype_mismatch (all operands have one dtype).
Tensor bilinear(Operand input1, const Tensor& input2, const Tensor& weight, const Tensor& bias = {});

/// |x1 - x2 + eps| along the last dim, in the norm p (ops/reduce.h: vector_norm). Shapes broadcast, dtypes promote;
/// the derivative where all differences are 0 is 0. Errors: shape_mismatch, dtype_mismatch.
Tensor pairwise_distance(Operand x1, const Tensor& x2, Scalar p = 2.0, Scalar eps = 1e-6,
                         bool keepdim = false);

}  // namespace retrograd
#pragma GCC visibility pop
