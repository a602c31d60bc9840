// Launchers: the entrances of all compiled kernels, for one target: code for devices, or the same source compiled for the host (see
// cuda/kernels/launch.h). A family of kernels is a field here, filled in cuda/kernels/launchers.cu.
#pragma once

#include "cuda/kernels/attention_call.h"
#include "cuda/kernels/class_losses_call.h"
#include "cuda/kernels/convolution_call.h"
#include "cuda/kernels/elementwise_call.h"
#include "cuda/kernels/grid_call.h"
#include "cuda/kernels/index_call.h"
#include "cuda/kernels/linalg_call.h"
#include "cuda/kernels/matmul_call.h"
#include "cuda/kernels/norms_call.h"
#include "cuda/kernels/optimizers_call.h"
#include "cuda/kernels/random_call.h"
#include "cuda/kernels/rearrange_call.h"
#include "cuda/kernels/reduce_call.h"
#include "cuda/kernels/sampling_call.h"
#include "cuda/kernels/scan_call.h"
#include "cuda/kernels/softmax_call.h"
#include "cuda/kernels/sort_call.h"

namespace retrograd::cuda {

struct Launchers {
  // Elementwise ops: a row per op of ops::ArithmeticOps, ops::UnaryOps and so on, in the order of the list.
  const ElementwiseRow *arithmetic = nullptr, *unary = nullptr, *activations = nullptr, *binary = nullptr,
                       *comparison = nullptr, *ternary = nullptr, *losses = nullptr;
  const ElementwiseRow* copy = nullptr;      // of one operand: itself
  const ReduceRow* reduce = nullptr;         // a row per Reduction
  const SoftmaxLauncher* softmax = nullptr;  // by SoftmaxKind
  const NormLaunchers* norms = nullptr;
  const ClassLossLaunchers* class_losses = nullptr;
  const ScanRow* scan = nullptr;  // a row per ScanKind
  const RandomLaunchers* random = nullptr;
  const RearrangeLaunchers* rearrange = nullptr;
  const IndexLaunchers* index = nullptr;
  const SortLaunchers* sort = nullptr;
  const OptimizerLaunchers* optimizers = nullptr;
  const MatmulRow* matmul = nullptr;
  const AttentionRow* attention = nullptr;
  const ConvolutionRow* convolution = nullptr;  // a row per ConvolutionWanted
  const GridRow* grids = nullptr;
  const SamplingLaunchers* sampling = nullptr;
  const MatrixLaunchers* matrices = nullptr;
  const FactorLaunchers* factor = nullptr;
  TriangularLauncher triangular = nullptr;
};

/// Without launchers in a build without CUDA.
namespace device_code {
const Launchers& launchers();
}
/// For tests.
namespace host_code {
const Launchers& launchers();
}

}  // namespace retrograd::cuda
