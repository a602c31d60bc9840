// Common code of the passes of attention by tensor cores: tiles of rows in shared memory, products of them, and results
// from registers to memory.
//
// A warp computes tiles of 16 rows: the left factor consists of its own rows, from shared memory or kept in registers;
// the right one is a tile that all warps of the block read. Products have two forms; in both a tile is stored in shared
// memory as in memory, row by row:
//
//   scores = own tile'        the tile's rows are columns of the right factor: they are read directly
//   result = weights tile     the tile's rows are its terms: they are read transposed. weights are scores of the same
//                             warp, in registers
//
// Rows consist of pieces of 16 bytes. Piece p of row r is stored at position p ^ (r % 8), so that the same piece of 8
// rows, which ldmatrix reads together, covers all banks. Rows and columns that a matrix does not have are zeros.
#pragma once

#include "cuda/kernels/attention.cuh"
#include "cuda/kernels/tensor_core.cuh"

namespace retrograd::inline v0::cuda::RG_TARGET {

inline constexpr float kLog2OfE = 1.4426950408889634f;
inline constexpr int kOfPiece = 8;   // elements of 16 bits
inline constexpr int kRowTile = 16;  // rows of a left factor

/// Rows of `depth` elements.
template <int depth>
struct RowTile {
  static constexpr int kPieces = depth / kOfPiece, kRowBytes = depth * 2;
  char* shared;
  int begin;  // bytes, a multiple of a row's

  /// Piece `even` + `odd`, where the first is even and the second 0 or 1. They are separate, so that the part of an
  /// address that the compiler knows is added last.
  __device__ char* piece(int row, int even, int odd) const {
    return shared + ((begin + row * kRowBytes + (odd ^ row % 8) * 16) ^ even * 16);
  }
  __device__ char* piece(int row, int p) const { return piece(row, p / 2 * 2, p % 2); }
  /// 16 rows, columns from 16k on, as a left factor.
  __device__ Fragment left(int row, int k) const {
    const int lane = lane_of_warp();
    return load_fragment<false>(piece(row + lane % 16, 2 * k, lane / 16));
  }
  /// 16 rows as columns of two right factors, whose terms are columns from 16k on.
  __device__ Fragment as_columns(int row, int k) const {
    const int lane = lane_of_warp();
    return load_fragment<false>(piece(row + lane % 8 + lane / 16 * 8, 2 * k, lane / 8 % 2));
  }
  /// 16 rows as terms of two right factors, whose columns are those of pieces p and p + 1; p is even.
  __device__ Fragment as_terms(int row, int p) const {
    const int lane = lane_of_warp();
    return load_fragment<true>(piece(row + lane % 16, p, lane / 16));
  }
};

/// Rows of a matrix in memory, each at a multiple of 16 bytes.
struct MatrixRows {
  const char* data;
  int row_bytes, rows, pieces;
};
template <class S>
__device__ MatrixRows matrix_rows(const Attention<float, S>& a, const AttentionPlaces& base, int side,
                                  int64_t rows, int64_t columns) {
  const BatchMatrix& m = a.call.side[side];
  return {static_cast<const char*>(m.data) + 2 * base[side], static_cast<int>(2 * m.row),
          static_cast<int>(rows), static_cast<int>(columns) / kOfPiece};
}

/// Begins to copy `rows` of them, from `first` on. Called by all threads of the block.
template <int threads, int rows, int depth>
__device__ void begin_rows(const RowTile<depth>& tile, const MatrixRows& from, int first) {
  using Tile = RowTile<depth>;
  static_assert(rows * Tile::kPieces % threads == 0 && threads % Tile::kPieces == 0);
  constexpr int step = threads / Tile::kPieces;  // rows at a time
  const int thread = static_cast<int>(threadIdx.x), p = thread % Tile::kPieces;
#pragma unroll 1  // addresses of all copies at the same time would take many registers
  for (int row = thread / Tile::kPieces, i = 0; i < rows / step; ++i, row += step) {
    const bool is_there = first + row < from.rows && p < from.pieces;
    const char* source = is_there ? from.data + int64_t{first + row} * from.row_bytes + p * 16 : from.data;
    begin_copy<16>(tile.piece(row, p), source, is_there ? 16 : 0);
  }
}

/// A warp's own rows as left factors, `tiles` of 16: in shared memory, or in registers.
template <int depth>
struct RowsInPlace {
  RowTile<depth> tile;
  int first;
  __device__ void load(const RowTile<depth>&, int) {}
  __device__ Fragment operator()(int i, int k) const { return tile.left(first + i * kRowTile, k); }
};
template <int tiles, int depth>
struct RowsInRegisters {
  Fragment of[tiles][depth / 16];
  __device__ void load(const RowTile<depth>& tile, int first) {
#pragma unroll
    for (int i = 0; i < tiles; ++i)
#pragma unroll
      for (int k = 0; k < depth / 16; ++k) of[i][k] = tile.left(first + i * kRowTile, k);
  }
  __device__ const Fragment& operator()(int i, int k) const { return of[i][k]; }
};

/// sums += own tile', for rows of the tile from `first` on.
template <class S, class Own, int depth, int tiles, int n>
__device__ void add_scores(const Own& own, const RowTile<depth>& tile, int first, Sums (&sums)[tiles][n]) {
#pragma unroll 4
  for (int k = 0; k < depth / 16; ++k) {
    Fragment left[tiles];
#pragma unroll
    for (int i = 0; i < tiles; ++i) left[i] = own(i, k);
#pragma unroll
    for (int j = 0; j < n; j += 2) {
      const Fragment right = tile.as_columns(first + j * 8, k);
#pragma unroll
      for (int i = 0; i < tiles; ++i) {
        add_product<S>(sums[i][j], left[i], right.part[0], right.part[1]);
        add_product<S>(sums[i][j + 1], left[i], right.part[2], right.part[3]);
      }
    }
  }
}

/// sums += weights tile, for rows of the tile from `first` on; the weights are rounded to S.
template <class S, int depth, int tiles, int n>
__device__ void add_weighted(const Sums (&weights)[tiles][n], const RowTile<depth>& tile, int first,
                             Sums (&sums)[tiles][depth / 8]) {
#pragma unroll
  for (int k = 0; k < n / 2; ++k) {
    Fragment left[tiles];
#pragma unroll
    for (int i = 0; i < tiles; ++i) left[i] = as_left<S>(weights[i][2 * k], weights[i][2 * k + 1]);
#pragma unroll
    for (int p = 0; p < depth / 8; p += 2) {
      const Fragment right = tile.as_terms(first + k * 16, p);
#pragma unroll
      for (int i = 0; i < tiles; ++i) {
        add_product<S>(sums[i][p], left[i], right.part[0], right.part[1]);
        add_product<S>(sums[i][p + 1], left[i], right.part[2], right.part[3]);
      }
    }
  }
}

/// Calls f(i, j, e, row, column) for the elements of a warp's sums: sums[i][j].v[e] is in this row and column of them.
template <int tiles, int n, class F>
__device__ void each_sum(const F& f) {
  const int lane = lane_of_warp();
#pragma unroll
  for (int i = 0; i < tiles; ++i)
#pragma unroll
    for (int j = 0; j < n; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        f(i, j, e, i * kRowTile + lane / 4 + e / 2 * 8, j * 8 + lane % 4 * 2 + e % 2);
}

/// A warp's sums, times a factor for each row, rounded, become rows of a dense matrix. They pass through the warp's own
/// rows of a tile, which is not read any more, so that 16 bytes are written at a time. `out`: the address of the first
/// row; `rows`: the number of rows.
template <class S, int tiles, int depth>
__device__ void write_rows(const Sums (&sums)[tiles][depth / 8], const float (&factor)[tiles][2],
                           const RowTile<depth>& tile, int first, S* out, int rows, int pieces) {
  const int lane = lane_of_warp();
  __syncwarp();
#pragma unroll
  for (int i = 0; i < tiles; ++i)
#pragma unroll
    for (int p = 0; p < depth / 8; ++p)
#pragma unroll
      for (int h = 0; h < 2; ++h)
        *reinterpret_cast<uint32_t*>(tile.piece(first + i * kRowTile + lane / 4 + h * 8, p) + lane % 4 * 4) =
            rounded_pair<S>(sums[i][p].v[2 * h] * factor[i][h], sums[i][p].v[2 * h + 1] * factor[i][h]);
  __syncwarp();
  using Piece = Pack<uint32_t, 4>;
  constexpr int of_row = RowTile<depth>::kPieces;
#pragma unroll
  for (int i = 0; i < tiles * kRowTile * of_row / 32; ++i) {
    const int row = (i * 32 + lane) / of_row, p = (i * 32 + lane) % of_row;
    if (row < rows && p < pieces)
      reinterpret_cast<Piece*>(out)[int64_t{row} * pieces + p] =
          *reinterpret_cast<const Piece*>(tile.piece(first + row, p));
  }
}

}  // namespace retrograd::cuda::RG_TARGET
