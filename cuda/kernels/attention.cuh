// Common code of the passes of attention: the call in the form for kernels, and products with matrices and with tiles
// of weights.
//
// A tile of weights is stored in shared memory term by term, in the form of the left factor of multiply_tiles().
#pragma once

#include "cuda/kernels/attention_call.h"
#include "cuda/kernels/launch.h"
#include "cuda/kernels/strided.h"
#include "cuda/kernels/tiles.h"
#include "ops/scalar_math.h"

namespace retrograd::inline v0::cuda::RG_TARGET {

template <class C>
RG_HD C exponential(C x) {
  return scalar::exp(scalar::Lane<C>(x)).v;
}

// Limited by 48 KiB of shared memory.
template <class C>
using AttentionTiles = Tiles<C, sizeof(C) == 4 ? 64 : 32>;

/// Computed in C; query, key, value, out and g are stored as S, of 16 bits or C itself.
template <class C, class S = C>
struct Attention {
  AttentionCall call;
  StridedGrid<AttentionCall::kSides> batch;
  Divider of_matrix;  // divides a query's number by the queries of a matrix
  C scale;

  explicit Attention(const AttentionCall& c)
      : call(c),
        batch(c.batches),
        of_matrix(c.queries, c.queries * c.batches),
        scale(static_cast<C>(c.scale)) {
    for (int d = 0; d < c.batch_rank; ++d) {
      int64_t stride[AttentionCall::kSides];
      for (int s = 0; s < AttentionCall::kSides; ++s) stride[s] = c.side[s].batch[d];
      batch.add(c.batch_size[d], stride);
    }
  }
};
/// The position of the first element of a batch's matrix on each side.
using AttentionPlaces = Offsets<AttentionCall::kSides>;

// Rows of a matrix from `begin` on as positions of a tile, with its columns as terms; or, turned, columns as positions
// and rows as terms.
template <class C, class S>
struct MatrixSource {
  const S* data;
  int64_t places, terms, place_step, term_step;
  bool terms_first;

  RG_HD C operator()(int place, int64_t term) const {
    return place < places && term < terms ? converted<C>(data[place * place_step + term * term_step]) : C(0);
  }
};
template <class C, class S>
__device__ MatrixSource<C, S> rows_of(const Attention<C, S>& a, const AttentionPlaces& base, int side,
                                      int64_t begin, int64_t rows, int64_t columns) {
  const BatchMatrix& m = a.call.side[side];
  return {static_cast<const S*>(m.data) + base[side] + begin * m.row,
          rows - begin,
          columns,
          m.row,
          m.column,
          m.column == 1};
}
template <class C, class S>
__device__ MatrixSource<C, S> columns_of(const Attention<C, S>& a, const AttentionPlaces& base, int side,
                                         int64_t row, int64_t begin, int64_t rows, int64_t columns) {
  const BatchMatrix& m = a.call.side[side];
  return {static_cast<const S*>(m.data) + base[side] + row * m.row + begin * m.column,
          columns - begin,
          rows - row,
          m.column,
          m.row,
          m.row == 1};
}

// sum += weights matrix, for a tile of weights in shared memory, with one row for each of the kTile terms.
template <class T, class C, class S>
__device__ void multiply_weights(const C* weights, const MatrixSource<C, S>& matrix, T& tiles,
                                 typename T::Own& sum) {
  const int thread = static_cast<int>(threadIdx.x);
  for (int term = 0; term < T::kTile; term += T::kDepth) {
    Fetched<T> of_matrix;
    of_matrix.read(matrix, thread, term);
    of_matrix.put(tiles.right);
    __syncthreads();
    multiply_tiles<T>(weights + term * T::kStep, tiles.right, thread / T::kAcross, thread % T::kAcross, sum);
    __syncthreads();
  }
}

template <class C>
RG_HD bool sees(const AttentionCall& call, int64_t query, int64_t key) {
  return query < call.queries && key < call.keys && !(call.is_causal && key > query);
}

template <class C>
Shape3 tiles_of(int64_t rows, int64_t columns, int64_t batches) {
  constexpr int64_t tile = AttentionTiles<C>::kTile;
  return {static_cast<unsigned>((rows + tile - 1) / tile * batches),
          static_cast<unsigned>((columns + tile - 1) / tile)};
}

// The fields of AttentionRow.
template <class C, class S>
void attention_backward(const AttentionCall& call, StreamHandle stream);
template <class S>
void attention_on_tensor_cores(const AttentionCall& call, StreamHandle stream);
template <class S>
void attention_backward_on_tensor_cores(const AttentionCall& call, StreamHandle stream);

}  // namespace retrograd::cuda::RG_TARGET
