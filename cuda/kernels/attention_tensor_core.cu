// Attention of 16 bits by tensor cores, forward (Dao, FlashAttention-2).
//
// A block has 128 queries of a matrix, a warp 32 of them. It goes through the keys 64 at a time: scores in registers
// become weights, 2^(score - largest), with the largest of each row so far; previous sums are rescaled to the new
// largest. The sums of weights are of float weights. The weights are rounded to 16 bits as factors of the values, as in
// FlashAttention-2: each then has an error of at most half a unit in its last place (2^-8 of it for bfloat16, 2^-11 for
// float16), and a result has at most that fraction of the largest value as error, before it is rounded itself.
//
// Shared memory has the queries, and keys and values twice: while one tile is multiplied, the next one is loaded. Tiles
// that the causal mask hides are not read. Blocks with many tiles come first.
//
//   depth   registers (sm_90)   threads   shared memory   blocks on a multiprocessor of sm_90
//    64           225             128         48 KiB        2 (by registers)
//   128           254             128         96 KiB        2 (by registers and by memory)
#include "cuda/kernels/launch.h"

#include "cuda/kernels/attention_tensor_core.cuh"

namespace retrograd::inline v0::cuda::RG_TARGET {
namespace {

template <int d>
struct ForwardShape {
  static constexpr int kDepth = d, kWarps = 4, kTiles = 2, kThreadsOfBlock = 32 * kWarps;
  static constexpr int kQueries = kWarps * kTiles * kRowTile, kKeys = 64;
  static constexpr int kColumns = d == 64 ? 64 : 32;  // of scores that a warp has at a time, in registers
  static constexpr int kRowBytes = RowTile<d>::kRowBytes;
  static constexpr size_t kShared = size_t{kQueries + 2 * 2 * kKeys} * kRowBytes;

  static __device__ RowTile<d> queries(char* shared) { return {shared, 0}; }
  static __device__ RowTile<d> keys(char* shared, int turn) {
    return {shared, (kQueries + turn % 2 * 2 * kKeys) * kRowBytes};
  }
  static __device__ RowTile<d> values(char* shared, int turn) {
    return {shared, keys(shared, turn).begin + kKeys * kRowBytes};
  }
};

// For each row of a warp: rows g and g + 8 of each tile of 16.
template <int tiles>
struct RowStates {
  float largest[tiles][2], sum[tiles][2];  // the sum is over this lane's columns

  __device__ RowStates() {
    for (int i = 0; i < tiles; ++i)
      for (int h = 0; h < 2; ++h) {
        largest[i][h] = -scalar::kInfinity;
        sum[i][h] = 0;
      }
  }
  static __device__ float largest_of_row(float x) {
    x = ::fmaxf(x, __shfl_xor_sync(~0u, x, 1));
    return ::fmaxf(x, __shfl_xor_sync(~0u, x, 2));
  }
  static __device__ float sum_of_row(float x) {
    x += __shfl_xor_sync(~0u, x, 1);
    return x + __shfl_xor_sync(~0u, x, 2);
  }
  // Scores become weights relative to the largest so far; out, the previous sum, is rescaled to it. scale > 0.
  template <int n, int columns>
  __device__ void weigh(float scale, Sums (&scores)[tiles][n], Sums (&out)[tiles][columns]) {
#pragma unroll
    for (int i = 0; i < tiles; ++i)
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        float most = largest[i][h];
#pragma unroll
        for (int j = 0; j < n; ++j)
          most = ::fmaxf(most, ::fmaxf(scores[i][j].v[2 * h], scores[i][j].v[2 * h + 1]));
        most = largest_of_row(most);
        const float base = most == -scalar::kInfinity ? 0.0f : most * scale;
        const float factor = power_of_2(largest[i][h] * scale - base);
        largest[i][h] = most;
        float added = 0;
#pragma unroll
        for (int j = 0; j < n; ++j)
#pragma unroll
          for (int e = 2 * h; e < 2 * h + 2; ++e) {
            scores[i][j].v[e] = power_of_2(multiply_add(scores[i][j].v[e], scale, -base));
            added += scores[i][j].v[e];
          }
        sum[i][h] = multiply_add(sum[i][h], factor, added);
#pragma unroll
        for (int j = 0; j < columns; ++j)
#pragma unroll
          for (int e = 2 * h; e < 2 * h + 2; ++e) out[i][j].v[e] *= factor;
      }
  }
  // Log sum exp of the first `rows` rows, and the factor for each row of out.
  __device__ void finish(float scale, int rows, float* lse, float (&factor)[tiles][2]) const {
    const int lane = lane_of_warp();
#pragma unroll
    for (int i = 0; i < tiles; ++i)
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int row = i * kRowTile + lane / 4 + h * 8;
        const float total = sum_of_row(sum[i][h]);
        factor[i][h] = total == 0 ? 0.0f : 1 / total;
        if (lane % 4 == 0 && row < rows)
          lse[row] = largest[i][h] * scale + scalar::log(scalar::Lane<float>(total)).v;
      }
  }
};

// Masked keys of a row get no weight. `query`, `key`: of the first row and column.
template <int tiles, int n>
__device__ void hide_keys(const AttentionCall& call, int query, int key, Sums (&scores)[tiles][n]) {
  const int keys = static_cast<int>(call.keys);
  each_sum<tiles, n>([&](int i, int j, int e, int row, int column) {
    if (key + column >= keys || (call.is_causal && key + column > query + row))
      scores[i][j].v[e] = -scalar::kInfinity;
  });
}

template <class S, class Shape>
__global__ void __launch_bounds__(Shape::kThreadsOfBlock, 2)
    tensor_forward_kernel(const Attention<float, S> a) {
  constexpr int depth = Shape::kDepth, tiles = Shape::kTiles, threads = Shape::kThreadsOfBlock;
  RG_DYNAMIC_SHARED(char, shared);
  const AttentionCall& call = a.call;
  const int queries = static_cast<int>(call.queries), keys = static_cast<int>(call.keys);
  const unsigned down = static_cast<unsigned>(queries + Shape::kQueries - 1) / Shape::kQueries;
  const unsigned matrix = blockIdx.x / down;
  const int first = static_cast<int>(down - 1 - (blockIdx.x - matrix * down)) * Shape::kQueries;
  const int own = static_cast<int>(threadIdx.x / 32) * tiles * kRowTile;  // this warp's first row of the tile
  const AttentionPlaces base(a.batch, matrix);
  const MatrixRows all_keys = matrix_rows(a, base, AttentionCall::kKey, call.keys, call.depth);
  const MatrixRows all_values = matrix_rows(a, base, AttentionCall::kValue, call.keys, call.width);
  const auto begin_tile = [&](int turn) {
    begin_rows<threads, Shape::kKeys>(Shape::keys(shared, turn), all_keys, turn * Shape::kKeys);
    begin_rows<threads, Shape::kKeys>(Shape::values(shared, turn), all_values, turn * Shape::kKeys);
    end_group();
  };

  begin_rows<threads, Shape::kQueries>(
      Shape::queries(shared), matrix_rows(a, base, AttentionCall::kQuery, call.queries, call.depth), first);
  begin_tile(0);
  const int end = call.is_causal && first + Shape::kQueries < keys ? first + Shape::kQueries : keys;
  const RowsInPlace<depth> query_rows{Shape::queries(shared), own};
  RowStates<tiles> rows;
  Sums out[tiles][depth / 8] = {};
  const float scale = a.scale * kLog2OfE;
  for (int turn = 0, key = 0; key < end; ++turn, key += Shape::kKeys) {
    wait_for_copies();
    __syncthreads();
    if (key + Shape::kKeys < end) begin_tile(turn + 1);
#pragma unroll 1
    for (int begin = 0; begin < Shape::kKeys; begin += Shape::kColumns) {
      const int query = first + own, column = key + begin;
      if (call.is_causal && column >= query + tiles * kRowTile) break;  // masked for the whole warp
      Sums scores[tiles][Shape::kColumns / 8] = {};
      add_scores<S>(query_rows, Shape::keys(shared, turn), begin, scores);
      if (column + Shape::kColumns > keys || (call.is_causal && column + Shape::kColumns > query + 1))
        hide_keys(call, query, column, scores);
      rows.weigh(scale, scores, out);
      add_weighted<S>(scores, Shape::values(shared, turn), begin, out);
    }
  }
  wait_for_copies();
  __syncthreads();

  const int left = queries - first - own;
  const int64_t query = int64_t{matrix} * queries + first + own;
  float factor[tiles][2];
  rows.finish(a.scale, left, static_cast<float*>(call.side[AttentionCall::kLse].data) + query, factor);
  S* const result = static_cast<S*>(call.side[AttentionCall::kOut].data);
  write_rows<S>(out, factor, Shape::queries(shared), own, result + query * call.width, left,
                all_values.pieces);
}

template <class S, int depth>
void launch_forward(const AttentionCall& call, StreamHandle stream) {
  using Shape = ForwardShape<depth>;
  const int64_t blocks = (call.queries + Shape::kQueries - 1) / Shape::kQueries * call.batches;
  launch(tensor_forward_kernel<S, Shape>,
         {static_cast<unsigned>(blocks), 1, Shape::kThreadsOfBlock, Shape::kShared}, stream,
         Attention<float, S>(call));
}

}  // namespace

template <class S>
void attention_on_tensor_cores(const AttentionCall& call, StreamHandle stream) {
  const bool is_small = call.depth <= 64 && call.width <= 64;
  (is_small ? launch_forward<S, 64> : launch_forward<S, 128>)(call, stream);
}

template void attention_on_tensor_cores<Half>(const AttentionCall&, StreamHandle);
template void attention_on_tensor_cores<BFloat16>(const AttentionCall&, StreamHandle);

}  // namespace retrograd::cuda::RG_TARGET
