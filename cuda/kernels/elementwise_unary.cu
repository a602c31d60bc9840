// Kernels of ops/unary.h: see cuda/kernels/elementwise.cuh.
#include "ops/unary.h"

#include "cuda/kernels/elementwise.cuh"

namespace retrograd::inline v0::cuda::RG_TARGET {

template const ElementwiseRow* rows<ops::UnaryOps>();

}  // namespace retrograd::cuda::RG_TARGET
