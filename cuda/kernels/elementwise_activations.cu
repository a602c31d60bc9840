// Kernels of ops/activations.h: see cuda/kernels/elementwise.cuh.
#include "ops/activations.h"

#include "cuda/kernels/elementwise.cuh"

namespace retrograd::inline v0::cuda::RG_TARGET {

template const ElementwiseRow* rows<ops::ActivationOps>();

}  // namespace retrograd::cuda::RG_TARGET
