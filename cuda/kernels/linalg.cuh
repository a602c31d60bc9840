// Shared by the kernels of linear algebra: the matrices of a batch by their strides, the assignment of work to threads,
// and the dispatch by type. Included after cuda/kernels/launch.h.
#pragma once

#include "cuda/kernels/linalg_call.h"
#include "cuda/kernels/strided.h"
#include "cuda/kernels/tiles.h"
#include "ops/scalar_math.h"

namespace retrograd::inline v0::cuda::RG_TARGET {

// Of linalg_parts.cu, linalg_factor.cu and linalg_solve.cu.
const MatrixLaunchers& matrix_launchers();
const FactorLaunchers& factor_launchers();
TriangularLauncher triangular_launcher();

/// One matrix.
template <class T>
struct MatrixView {
  T* data;
  int64_t row, column;
  RG_HD T& operator()(int64_t i, int64_t j) const { return data[i * row + j * column]; }
};

/// One side of a call.
template <class T>
struct Matrices {
  T* data;
  int64_t row, column;
  StridedGrid<1> batch;

  Matrices(const BatchMatrix& side, const MatrixBatch& dims)
      : data(static_cast<T*>(side.data)), row(side.row), column(side.column), batch(dims.count) {
    for (int d = 0; d < dims.rank; ++d) batch.add(dims.size[d], {side.batch[d]});
  }
  RG_HD MatrixView<T> at(int64_t item) const { return {data + Offsets<1>(batch, item)[0], row, column}; }
};

/// a - b * c.
template <class T>
__device__ inline T without(T a, T b, T c) {
  return multiply_add(-b, c, a);
}
template <class T>
__device__ inline T magnitude(T v) {
  return v < 0 ? -v : v;
}

/// The thread's index in its block.
__device__ inline int64_t me() { return threadIdx.x; }

/// Blocks for this many items, one block per item. There may be more items than a grid has blocks.
inline Shape3 blocks_for(int64_t items) {
  constexpr int64_t kMost = 4096;  // more than any device runs at the same time
  return {static_cast<unsigned>(items < kMost ? items : kMost)};
}
/// Calls f(item) for the items of the block.
template <class F>
__device__ void for_items(int64_t items, const F& f) {
  for (int64_t item = blockIdx.x; item < items; item += gridDim.x) f(item);
}

/// Calls f with a number of the call's type.
template <class F>
void by_type(bool is_double, const F& f) {
  is_double ? f(double{}) : f(float{});
}

}  // namespace retrograd::cuda::RG_TARGET
