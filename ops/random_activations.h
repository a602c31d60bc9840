// Activations that draw random numbers in training. They are made of other ops.
#pragma once

#include "ops/op.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

/// x where it is positive, else x times a slope: in training drawn for each element, uniform in [lower, upper); else
/// their middle. Floating dtypes. Errors: dtype_mismatch, bad_argument unless lower <= upper and both are finite.
Tensor rrelu(Operand input, double lower = 1.0 / 8, double upper = 1.0 / 3, bool training = false);
/// In place; returns x.
const Tensor& rrelu_(const Tensor& x, double lower = 1.0 / 8, double upper = 1.0 / 3, bool training = false,
                     SourceLocation where = SourceLocation::current());

/// softmax((logits + g) / tau) along `dim`, with g from the standard Gumbel distribution: a differentiable sample of
/// one of n classes (Jang et al. 2017). `hard` gives the one-hot vector of the largest entry, with the gradient of the
/// soft sample. Errors: dtype_mismatch, bad_dim, bad_argument unless tau > 0.
Tensor gumbel_softmax(Operand logits, double tau = 1.0, bool hard = false, int64_t dim = -1);

}  // namespace retrograd
#pragma GCC visibility pop
