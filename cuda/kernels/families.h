// The families of kernels of CUDA devices: the one list in which a family is entered. An entry X(NAME, Type) stands for
//
//   add_NAME_kernels(KernelTable&)    in NAME.cc: its rows of the table (cuda/kernels/table.h)
//   Launchers::NAME                   a `const Type*`, by which NAME.cc calls its kernels (cuda/kernels/launchers.h)
//   add_NAME_launchers(Launchers&)    in NAME.cu, once for each target: it fills in that field
//
// Type is a struct of pointers to launchers, mostly from NAME_call.h, or the first of a row of such structs. A family
// with several .cu files has one NAME.cu that puts them together. One without launchers of its own needs no entry: the
// family whose launchers it calls adds its rows (determinants.cc).
#pragma once

#define RG_CUDA_FAMILIES(X)            \
  X(elementwise, ElementwiseLaunchers) \
  X(copy, ElementwiseRow)              \
  X(reduce, ReduceRow)                 \
  X(softmax, SoftmaxLaunchers)         \
  X(norms, NormLaunchers)              \
  X(class_losses, ClassLossLaunchers)  \
  X(scan, ScanRow)                     \
  X(random, RandomLaunchers)           \
  X(sampling, SamplingLaunchers)       \
  X(range, RangeLaunchers)             \
  X(rearrange, RearrangeLaunchers)     \
  X(index, IndexLaunchers)             \
  X(sort, SortLaunchers)               \
  X(optimizers, OptimizerLaunchers)    \
  X(matmul, MatmulRow)                 \
  X(attention, AttentionRow)           \
  X(recurrent, RecurrentLaunchers)     \
  X(convolution, ConvolutionRow)       \
  X(grids, GridRow)                    \
  X(grid_sample, GridSampleLaunchers)  \
  X(linalg, LinalgLaunchers)
