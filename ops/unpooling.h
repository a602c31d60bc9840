// Max pooling undone, and at random places: max_unpool, fractional_max_pool. They are made of index ops: positions are
// computed, then elements are written there (unpool) or taken from there (the pool), so that derivatives are those of
// scatter and gather.
#pragma once

#include "ops/pooling.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

/// The grid that max_pool gave `input` and `indices` for, with zeros at all other places. Both are (C, L) and so on, or
/// these with a batch (ops/pooling.h); indices int64, of input's shape. An empty stride means the kernel_size.
/// output_size, with an entry per dim of the grid or of the result, selects one of the sizes that pool to this one;
/// default (size - 1) stride - 2 padding + kernel_size, and less than a stride away from it otherwise. Where an index
/// occurs twice one of the elements is kept. Errors: bad_dim, shape_mismatch, dtype_mismatch, index_out_of_range,
/// bad_argument.
Tensor max_unpool1d(Operand input, const Tensor& indices, const IntList& kernel_size,
                    const IntList& stride = {}, const IntList& padding = 0, const IntList& output_size = {});
Tensor max_unpool2d(Operand input, const Tensor& indices, const IntList& kernel_size,
                    const IntList& stride = {}, const IntList& padding = 0, const IntList& output_size = {});
Tensor max_unpool3d(Operand input, const Tensor& indices, const IntList& kernel_size,
                    const IntList& stride = {}, const IntList& padding = 0, const IntList& output_size = {});

/// The number of windows of a fractional pool: a size per dim, or a ratio of the operand's, in (0, 1), rounded down.
struct FractionalSize {
  IntList output_size = {};
  PerDim<double> output_ratio = {};
};

/// The largest elements of windows of kernel_size elements that overlap and begin at random places, which spread evenly
/// over the grid (Graham 2014); a size is at most the operand's less kernel_size - 1. Operands (C, H, W) or (C, D, H,
/// W), or these with a batch. random_samples (N, C, number of dims) in [0, 1), in the order of PyTorch, decides instead
/// of a draw. Indices as in max_pool. Errors: bad_dim, bad_argument, shape_mismatch (random_samples), dtype_mismatch.
MaxPoolResult fractional_max_pool2d_with_indices(Operand input, const IntList& kernel_size,
                                                 const FractionalSize& size,
                                                 const Tensor& random_samples = {});
MaxPoolResult fractional_max_pool3d_with_indices(Operand input, const IntList& kernel_size,
                                                 const FractionalSize& size,
                                                 const Tensor& random_samples = {});
Tensor fractional_max_pool2d(Operand input, const IntList& kernel_size, const FractionalSize& size,
                             const Tensor& random_samples = {});
Tensor fractional_max_pool3d(Operand input, const IntList& kernel_size, const FractionalSize& size,
                             const Tensor& random_samples = {});

}  // namespace retrograd
#pragma GCC visibility pop
