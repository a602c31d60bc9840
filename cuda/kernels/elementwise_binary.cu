// Kernels of ops/arithmetic.h, ops/binary.h, ops/comparison.h, ops/ternary.h and ops/losses.h: see
// cuda/kernels/elementwise.cuh.
#include "ops/arithmetic.h"
#include "ops/binary.h"
#include "ops/comparison.h"
#include "ops/losses.h"
#include "ops/ternary.h"

#include "cuda/kernels/elementwise.cuh"

namespace retrograd::inline v0::cuda::RG_TARGET {

template const ElementwiseRow* rows<ops::ArithmeticOps>();
template const ElementwiseRow* rows<ops::BinaryOps>();
template const ElementwiseRow* rows<ops::ComparisonOps>();
template const ElementwiseRow* rows<ops::TernaryOps>();
template const ElementwiseRow* rows<ops::LossOps>();

}  // namespace retrograd::cuda::RG_TARGET
