// Matrices in the last two dims of tensors, in plain data: made by cuda/kernels/linalg.cc from a Call, used by the
// launchers of linalg_factor.cu, linalg_solve.cu and linalg_parts.cu.
//
// All sides of a call have one batch. A side is read directly, by strides; `dense` memory of a batch holds the
// matrices, or the n numbers of each, contiguously. Numbers are float or double. If a call has `only`, matrices whose
// entry there is zero are skipped.
#pragma once

#include <cstdint>

#include "cuda/fault.h"
#include "cuda/kernels/batch_matrix.h"

struct CUstream_st;

namespace retrograd::inline v0::cuda {

struct MatrixBatch {
  int64_t count = 1;
  int rank = 0;
  int64_t size[8] = {};
};

/// to[i][j] = scale * from[rows_of[i]][columns_of[j]]; a number that is no row reads as zero.
struct MoveCall {
  bool is_double = false;
  MatrixBatch batch{};
  int64_t rows = 0, columns = 0;  // of `to`
  int64_t from_rows = 0, from_columns = 0;
  BatchMatrix from{}, to{};                                 // from: without data it is the unit matrix
  const int32_t *rows_of = nullptr, *columns_of = nullptr;  // dense; null: i and j themselves
  const void* scale = nullptr;                              // a number for each matrix; null: 1
  const int32_t* only = nullptr;
};

/// In place, for the dense matrices of order n at `a`, row-major.
struct FactorCall {
  bool is_double = false, upper = false;  // upper: which triangle of a symmetric matrix
  int64_t n = 0, count = 0;
  void* a = nullptr;
  int32_t* permutation = nullptr;  // for lu: dense, as in ops/linalg.h

  // For full pivoting: row i of the factors' product is row permutation[i], column j column columns[j] of the matrix.
  // All dense.
  int32_t *columns = nullptr, *rows_inverse = nullptr, *columns_inverse = nullptr;
  void *diagonal = nullptr, *before = nullptr, *behind = nullptr;  // D, and products of its other elements
  void* sign = nullptr;  // of both permutations, a number for each matrix
  const int32_t* only = nullptr;
};

/// x (n, columns) becomes the solution of T x = x, where T is a triangle of t (n, n); `unit`: with ones on its
/// diagonal.
struct TriangularCall {
  bool is_double = false, upper = false, unit = false;
  MatrixBatch batch{};
  int64_t n = 0, columns = 0;
  BatchMatrix t{}, x{};
  const int32_t* only = nullptr;
};

/// Properties of factors to compute; null: not wanted.
struct FactsCall {
  bool is_double = false;
  bool refuses_zeros = false;      // on the diagonal: singular
  bool refuses_negatives = false;  // on the diagonal, also zeros and nan: not positive definite
  MatrixBatch batch{};
  int64_t n = 0;
  BatchMatrix factors{}, permutation{};  // permutation: int32 in a column; no data: none
  const int32_t* info = nullptr;         // of a library: not 0: it failed at the matrix
  int32_t *rows = nullptr,
          *inverse = nullptr;  // dense: the permutation and its inverse; both, if there is one
  int32_t* failure = nullptr;  // a MatrixFailure for each matrix
  void *det = nullptr, *sign = nullptr, *log = nullptr;  // a number for each matrix
  int32_t* is_ill = nullptr;  // whether division by the pivots, due to their sizes, costs too many digits
  double least_ratio = 0;     // of the smallest pivot to the largest, for a matrix that is not ill
};

/// The derivative of the cofactors of a diagonal matrix in the direction f: c, both dense of order n. f: null: the
/// cofactors.
struct DiagonalCall {
  bool is_double = false;
  int64_t n = 0, count = 0;
  const void *diagonal = nullptr, *before = nullptr, *behind = nullptr, *f = nullptr;
  void* c = nullptr;
  const int32_t* only = nullptr;
};

struct MatrixLaunchers {
  void (*move)(const MoveCall&, CUstream_st*);
  void (*facts)(const FactsCall&, CUstream_st*);
  void (*diagonal)(const DiagonalCall&, CUstream_st*);
  /// Zeros above the diagonal, or with `upper` below it.
  void (*clear_triangle)(const FactorCall&, CUstream_st*);
  /// Converts successive exchanges of rows, row k with row pivots[k] - 1, to a permutation.
  void (*order_rows)(const int64_t* pivots, int32_t* permutation, int64_t n, int64_t count, CUstream_st*);
  /// Records the first matrix with a failure; those without a permutation come before all others.
  void (*report)(const int32_t* failure, int64_t count, bool is_batch, const FaultNote&, CUstream_st*);
};

struct FactorLaunchers {
  void (*lu)(const FactorCall&, CUstream_st*);
  void (*cholesky)(const FactorCall&, CUstream_st*);
  void (*full_pivots)(const FactorCall&, CUstream_st*);
};

using TriangularLauncher = void (*)(const TriangularCall&, CUstream_st*);

struct LinalgLaunchers {
  MatrixLaunchers matrices;
  FactorLaunchers factor;
  TriangularLauncher triangular;
};

}  // namespace retrograd::cuda
