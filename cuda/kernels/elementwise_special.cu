// Kernels of ops/special.h, ops/float_ops.h, ops/bitwise.h and ops/shrinkage.h: see cuda/kernels/elementwise.cuh.
#include "ops/bitwise.h"
#include "ops/float_ops.h"
#include "ops/shrinkage.h"
#include "ops/special.h"

#include "cuda/kernels/elementwise.cuh"

namespace retrograd::inline v0::cuda::RG_TARGET {

template const ElementwiseRow* rows<ops::SpecialOps>();
template const ElementwiseRow* rows<ops::FloatOps>();
template const ElementwiseRow* rows<ops::BitwiseOps>();
template const ElementwiseRow* rows<ops::ShrinkageOps>();

}  // namespace retrograd::cuda::RG_TARGET
