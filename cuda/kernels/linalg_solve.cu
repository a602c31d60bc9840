// Triangular systems: see cuda/kernels/linalg_call.h.
//
// A block computes a strip of kTile columns of x, kTile rows after another: it subtracts from these rows the
// contributions of the rows solved before, tile by tile through shared memory, and then solves with the tile on the
// diagonal, one row at a time. So strips are independent of each other, and a sum's terms are in the order of the rows.
#include "cuda/kernels/linalg_call.h"

#include "cuda/kernels/launch.h"
// Included after it, since it needs RG_TARGET.
#include "cuda/kernels/linalg.cuh"

namespace retrograd::inline v0::cuda::RG_TARGET {
namespace {

constexpr int kTile = 32, kGroups = kThreads / kTile, kOwn = kTile / kGroups;

template <class T>
using Tile = T[kTile][kTile + 1];

// `place` is in the order in which tiles are solved.
__device__ inline int64_t first_row(const TriangularCall& call, int64_t tiles, int64_t place) {
  return (call.upper ? tiles - 1 - place : place) * kTile;
}

// A tile of t; the unit matrix beyond its edges.
template <class T>
__device__ void fetch(const MatrixView<T>& t, int64_t n, int64_t row, int64_t column, int lane, int group,
                      Tile<T>& tile) {
  for (int i = group; i < kTile; i += kGroups)
    tile[i][lane] =
        row + i < n && column + lane < n ? t(row + i, column + lane) : T(row + i == column + lane);
}

// Thread (lane, group) has the elements of column `lane` in the rows group, group + kGroups, ...
template <class T>
__device__ void solve_tile(const TriangularCall& call, const Tile<T>& t, Tile<T>& x, int lane, int group) {
  for (int step = 0; step < kTile; ++step) {
    const int k = call.upper ? kTile - 1 - step : step;
    if (!call.unit && k % kGroups == group) x[k][lane] /= t[k][k];
    __syncthreads();
    const T solved = x[k][lane];
    for (int i = group; i < kTile; i += kGroups)
      if (call.upper ? i < k : i > k) x[i][lane] = without(x[i][lane], t[i][k], solved);
  }
}

// The columns of x from strip * kTile on.
template <class T>
__device__ void solve_strip(const TriangularCall& call, const MatrixView<T>& t, const MatrixView<T>& x,
                            int64_t strip, Tile<T>& tile, Tile<T>& rows) {
  const int lane = static_cast<int>(me()) % kTile, group = static_cast<int>(me()) / kTile;
  const int64_t n = call.n, tiles = (n + kTile - 1) / kTile, column = strip * kTile + lane;
  const bool is_column = column < call.columns;
  for (int64_t place = 0; place < tiles; ++place) {
    const int64_t first = first_row(call, tiles, place);
    T own[kOwn];
#pragma unroll
    for (int e = 0; e < kOwn; ++e) {
      const int64_t row = first + group + e * kGroups;
      own[e] = row < n && is_column ? x(row, column) : T(0);
    }
    for (int64_t before = 0; before < place; ++before) {
      const int64_t solved = first_row(call, tiles, before);
      fetch(t, n, first, solved, lane, group, tile);
      for (int i = group; i < kTile; i += kGroups)
        rows[i][lane] = solved + i < n && is_column ? x(solved + i, column) : T(0);
      __syncthreads();
      for (int k = 0; k < kTile; ++k)
#pragma unroll
        for (int e = 0; e < kOwn; ++e) own[e] = without(own[e], tile[group + e * kGroups][k], rows[k][lane]);
      __syncthreads();
    }
    fetch(t, n, first, first, lane, group, tile);
#pragma unroll
    for (int e = 0; e < kOwn; ++e) rows[group + e * kGroups][lane] = own[e];
    __syncthreads();
    solve_tile<T>(call, tile, rows, lane, group);
#pragma unroll
    for (int e = 0; e < kOwn; ++e) {
      const int64_t row = first + group + e * kGroups;
      if (row < n && is_column) x(row, column) = rows[group + e * kGroups][lane];
    }
    __syncthreads();
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads, kLeastBlocks)
    solve_kernel(const TriangularCall call, const Matrices<T> ts, const Matrices<T> xs, const int64_t strips,
                 const Divider by_strips) {
  __shared__ Tile<T> tile, rows;
  for_items(call.batch.count * strips, [&](int64_t place) {
    const int64_t item = by_strips(place);
    if (call.only && !call.only[item]) return;
    solve_strip<T>(call, ts.at(item), xs.at(item), place - item * strips, tile, rows);
  });
}

void launch_solve(const TriangularCall& call, StreamHandle stream) {
  const int64_t strips = (call.columns + kTile - 1) / kTile, items = call.batch.count * strips;
  by_type(call.is_double, [&]<class T>(T) {
    launch(solve_kernel<T>, blocks_for(items), stream, call, Matrices<T>(call.t, call.batch),
           Matrices<T>(call.x, call.batch), strips, Divider(strips, items));
  });
}

}  // namespace

TriangularLauncher triangular_launcher() { return launch_solve; }

}  // namespace retrograd::cuda::RG_TARGET
