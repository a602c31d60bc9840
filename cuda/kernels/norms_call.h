// Normalisation in plain data: made by cuda/kernels/norms.cc from a Call, used by the launchers of
// cuda/kernels/norms.cu.
#pragma once

#include "cuda/kernels/rows_call.h"

namespace retrograd::inline v0::cuda {

/// Rows are along the normalised dims. Weight and bias, with the strides of their own dims and 0 along the others, may
/// be absent.
struct NormCall {
  RowSide x, weight, bias, y;
  void *mean = nullptr, *rstd = nullptr;  // of each row, contiguous, in the compute type
  double eps = 0;
  bool center = true;
  RowCut cut;
  Pair* partials = nullptr;  // of each part of each row, if cut.splits > 1
};

struct NormBackwardCall {
  RowSide g, x, mean, rstd, weight, dx;
  bool center = true;
  RowCut cut;
  Pair* partials = nullptr;
};

/// Rows are the entries of weight and bias, along all other dims; mean and rstd are repeated to x.
struct AffineGradientCall {
  RowSide g, x, mean, rstd;
  void *dweight = nullptr, *dbias = nullptr;  // of x's element type
  RowCut cut;
  Pair* partials = nullptr;
};

struct NormLaunchers {
  void (*forward)(const NormCall&, CUstream_st* stream);
  void (*backward)(const NormBackwardCall&, CUstream_st* stream);
  void (*affine)(const AffineGradientCall&, CUstream_st* stream);
};

}  // namespace retrograd::cuda
