// The launchers of all elementwise ops. Their kernels are compiled in elementwise_*.cu, some lists of ops in each: see
// cuda/kernels/elementwise.cuh, which is not included here, so that nothing is compiled twice.
#include "cuda/kernels/elementwise_call.h"
#include "cuda/kernels/launch.h"
#include "cuda/kernels/launchers.h"
#include "ops/activations.h"
#include "ops/arithmetic.h"
#include "ops/binary.h"
#include "ops/bitwise.h"
#include "ops/comparison.h"
#include "ops/float_ops.h"
#include "ops/losses.h"
#include "ops/shrinkage.h"
#include "ops/special.h"
#include "ops/ternary.h"
#include "ops/unary.h"

namespace retrograd::inline v0::cuda::RG_TARGET {

template <class List>
const ElementwiseRow* rows();

void add_elementwise_launchers(Launchers& all) {
  static const ElementwiseLaunchers own{.arithmetic = rows<ops::ArithmeticOps>(),
                                        .unary = rows<ops::UnaryOps>(),
                                        .activations = rows<ops::ActivationOps>(),
                                        .binary = rows<ops::BinaryOps>(),
                                        .comparison = rows<ops::ComparisonOps>(),
                                        .ternary = rows<ops::TernaryOps>(),
                                        .losses = rows<ops::LossOps>(),
                                        .special = rows<ops::SpecialOps>(),
                                        .floats = rows<ops::FloatOps>(),
                                        .bitwise = rows<ops::BitwiseOps>(),
                                        .shrinkage = rows<ops::ShrinkageOps>()};
  all.elementwise = &own;
}

}  // namespace retrograd::cuda::RG_TARGET
