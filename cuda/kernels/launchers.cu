// See cuda/kernels/launchers.h.
#include "cuda/kernels/launchers.h"

#include "cuda/kernels/launch.h"
#include "ops/activations.h"
#include "ops/arithmetic.h"
#include "ops/binary.h"
#include "ops/comparison.h"
#include "ops/losses.h"
#include "ops/ternary.h"
#include "ops/unary.h"

namespace retrograd::cuda::RG_TARGET {

template <class List>
const ElementwiseRow* rows();
const ElementwiseRow& copy_row();
const ReduceRow* reduce_rows();
const SoftmaxLauncher* softmax_launchers();
const NormLaunchers& norm_launchers();
const ClassLossLaunchers& class_loss_launchers();
const ScanRow* scan_rows();
const RandomLaunchers& random_launchers();
const RearrangeLaunchers& rearrange_launchers();
const IndexLaunchers& index_launchers();
const SortLaunchers& sort_launchers();
const OptimizerLaunchers& optimizer_launchers();
const MatmulRow& matmul_row();
const AttentionRow& attention_row();
const ConvolutionRow* convolution_rows();
const GridRow& grid_row();
const SamplingLaunchers& sampling_launchers();
const MatrixLaunchers& matrix_launchers();
const FactorLaunchers& factor_launchers();
TriangularLauncher triangular_launcher();

const Launchers& launchers() {
  static const Launchers all{.arithmetic = rows<ops::ArithmeticOps>(),
                             .unary = rows<ops::UnaryOps>(),
                             .activations = rows<ops::ActivationOps>(),
                             .binary = rows<ops::BinaryOps>(),
                             .comparison = rows<ops::ComparisonOps>(),
                             .ternary = rows<ops::TernaryOps>(),
                             .losses = rows<ops::LossOps>(),
                             .copy = &copy_row(),
                             .reduce = reduce_rows(),
                             .softmax = softmax_launchers(),
                             .norms = &norm_launchers(),
                             .class_losses = &class_loss_launchers(),
                             .scan = scan_rows(),
                             .random = &random_launchers(),
                             .rearrange = &rearrange_launchers(),
                             .index = &index_launchers(),
                             .sort = &sort_launchers(),
                             .optimizers = &optimizer_launchers(),
                             .matmul = &matmul_row(),
                             .attention = &attention_row(),
                             .convolution = convolution_rows(),
                             .grids = &grid_row(),
                             .sampling = &sampling_launchers(),
                             .matrices = &matrix_launchers(),
                             .factor = &factor_launchers(),
                             .triangular = triangular_launcher()};
  return all;
}

}  // namespace retrograd::cuda::RG_TARGET
