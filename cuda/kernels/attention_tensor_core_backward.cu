// Attention of 16 bits by tensor cores, backward, from log sum exp (lse) and delta = g . out of each query: weights p =
// 2^(score - lse) and ds = p * (g value' - delta), which are rounded to 16 bits as factors of the next product
// (attention_tensor_core.cu states the error);
//
//   gradient of query = scale * ds key, of key = scale * ds' query, of value = p' g.
//
// One kernel is launched twice. In both launches a block has 128 rows, 16 per warp, and goes through tiles of the other
// side; scores and their gradients ("slopes") for a warp's rows stay in its registers. No sum combines two blocks: bits
// do not depend on their order, at the price of computing scores twice.
//
//   launch   own rows     other side   scores      slopes     results
//   query    query, g     key, value   query key'  g value'   ds key
//   key      key, value   query, g     key query'  value g'   ds query, p g
//
// Shared memory has the own rows, and twice a tile of the other side with base and delta of its queries: while one is
// multiplied, the next one is loaded. With rows of 64 elements the own ones are kept in registers. Missing rows are
// zeros; so a query beyond the last has weights, but no gradient. Order of blocks: the launch by query begins with the
// last tiles, that by key with the first, which have most work under the causal mask.
//
//   rows of   registers (sm_90)    threads   shared memory   blocks on a multiprocessor of sm_90
//     64      query 128, key 194     256        65 KiB       query 2, key 1 (by registers)
//    128      query 161, key 228     256        96.5 KiB     1 (by registers)
#include "cuda/kernels/launch.h"

#include "cuda/kernels/attention_tensor_core.cuh"

namespace retrograd::inline v0::cuda::RG_TARGET {
namespace {

enum class Of { query, key };

// For a query: lse * log2(e), and delta.
struct alignas(8) Query {
  float base, delta;
};

// Eight lanes for each query.
template <class S>
__global__ void __launch_bounds__(kThreads) delta_kernel(const Attention<float, S> a) {
  using Piece = Pack<S, kOfPiece>;
  constexpr int lanes = 8;
  const AttentionCall& call = a.call;
  const int64_t all = call.batches * call.queries;
  const int64_t number = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) / lanes;
  const int64_t query = number < all ? number : all - 1;
  const int lane = static_cast<int>(threadIdx.x % lanes);
  const int64_t matrix = a.of_matrix(query), row = query - matrix * call.queries;
  const AttentionPlaces base(a.batch, matrix);
  const auto row_of = [&](int side) {
    const BatchMatrix& m = call.side[side];
    return reinterpret_cast<const Piece*>(static_cast<const S*>(m.data) + base[side] + row * m.row);
  };
  const Piece *const g = row_of(AttentionCall::kG), *const out = row_of(AttentionCall::kOut);
  float sum = 0;
  for (int64_t p = lane; p < call.width / kOfPiece; p += lanes) {
    const Piece x = g[p], y = out[p];
#pragma unroll
    for (int i = 0; i < kOfPiece; ++i)
      sum = multiply_add(converted<float>(x.v[i]), converted<float>(y.v[i]), sum);
  }
#pragma unroll
  for (int step = lanes / 2; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
  if (lane > 0 || number >= all) return;
  const BatchMatrix& lse = call.side[AttentionCall::kLse];
  const float of_row = static_cast<const float*>(lse.data)[base[AttentionCall::kLse] + row * lse.row];
  static_cast<Query*>(call.delta)[query] = {of_row * kLog2OfE, sum};
}

template <int d, Of of>
struct BackwardShape {
  static constexpr int kDepth = d, kWarps = 8, kThreadsOfBlock = 32 * kWarps;
  static constexpr bool kByQuery = of == Of::query;
  static constexpr int kRows = kWarps * kRowTile, kOthers = d == 64 ? 64 : 32;
  static constexpr int kColumns = 32;  // of scores that a warp has at a time
  static constexpr int kBlocks = d == 64 && kByQuery ? 2 : 1;
  static constexpr int kRowBytes = RowTile<d>::kRowBytes;
  static constexpr int kTurnBytes = kOthers * (2 * kRowBytes + static_cast<int>(sizeof(Query)));
  static constexpr size_t kShared = size_t{2 * kRows} * kRowBytes + 2 * kTurnBytes;
  // The factors of scores (0) and of slopes (1).
  static constexpr int query_side(int i) { return i == 0 ? AttentionCall::kQuery : AttentionCall::kG; }
  static constexpr int key_side(int i) { return i == 0 ? AttentionCall::kKey : AttentionCall::kValue; }
  static constexpr int own_side(int i) { return kByQuery ? query_side(i) : key_side(i); }
  static constexpr int other_side(int i) { return kByQuery ? key_side(i) : query_side(i); }
  using Own = std::conditional_t<d == 64, RowsInRegisters<1, d>, RowsInPlace<d>>;

  static __device__ RowTile<d> own(char* shared, int which) { return {shared, which * kRows * kRowBytes}; }
  static __device__ RowTile<d> other(char* shared, int turn, int which) {
    return {shared, own(shared, 2).begin + turn % 2 * kTurnBytes + which * kOthers * kRowBytes};
  }
  static __device__ Query* queries(char* shared, int turn) {
    return reinterpret_cast<Query*>(shared + other(shared, turn, 2).begin);
  }
};

// Scores become weights, slopes the gradients of scores. `row`, `column`: the first ones; of_row, of_column: the
// properties of queries.
template <class Shape, int n>
__device__ void weigh(const AttentionCall& call, float scale, int row, int column, const Query (&of_row)[2],
                      const Query* of_column, Sums (&scores)[1][n], Sums (&slopes)[1][n]) {
  const int keys = static_cast<int>(call.keys), lane = lane_of_warp();
  const int first_query = Shape::kByQuery ? row : column;
  const int last_key = (Shape::kByQuery ? column + Shape::kColumns : row + kRowTile) - 1;
  const bool hides = (Shape::kByQuery && last_key >= keys) || (call.is_causal && last_key > first_query);
#pragma unroll
  for (int j = 0; j < n; ++j) {
    Query pair[2] = {of_row[0], of_row[1]};
    if constexpr (!Shape::kByQuery) {
      pair[0] = of_column[j * 8 + lane % 4 * 2];
      pair[1] = of_column[j * 8 + lane % 4 * 2 + 1];
    }
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const Query& q = pair[Shape::kByQuery ? e / 2 : e % 2];
      float& weight = scores[0][j].v[e];
      float& slope = slopes[0][j].v[e];
      weight = power_of_2(multiply_add(weight, scale, -q.base));
      if (hides) {
        const int r = row + lane / 4 + e / 2 * 8, c = column + j * 8 + lane % 4 * 2 + e % 2;
        const int query = Shape::kByQuery ? r : c, key = Shape::kByQuery ? c : r;
        if (key >= keys || (call.is_causal && key > query)) weight = 0;
      }
      slope = weight * (slope - q.delta);
    }
  }
}

// One tile of the other side, for a warp's rows.
template <class S, class Shape, int pieces>
__device__ void add_tile(const AttentionCall& call, float scale, char* shared, int turn, int row, int other,
                         const typename Shape::Own (&own)[2], const Query (&of_row)[2],
                         Sums (&first)[1][pieces], Sums (&second)[1][pieces]) {
#pragma unroll 1
  for (int begin = 0; begin < Shape::kOthers; begin += Shape::kColumns) {
    const int column = other + begin;
    const int first_key = Shape::kByQuery ? column : row;
    const int last_query = (Shape::kByQuery ? row + kRowTile : column + Shape::kColumns) - 1;
    if (call.is_causal && first_key > last_query) continue;  // masked for the whole warp
    constexpr int n = Shape::kColumns / 8;
    Sums scores[1][n] = {}, slopes[1][n] = {};
    add_scores<S>(own[0], Shape::other(shared, turn, 0), begin, scores);
    add_scores<S>(own[1], Shape::other(shared, turn, 1), begin, slopes);
    weigh<Shape>(call, scale, row, column, of_row, Shape::queries(shared, turn) + begin, scores, slopes);
    if constexpr (!Shape::kByQuery) add_weighted<S>(scores, Shape::other(shared, turn, 1), begin, second);
    add_weighted<S>(slopes, Shape::other(shared, turn, 0), begin, first);
  }
}

template <class S, class Shape>
__global__ void __launch_bounds__(Shape::kThreadsOfBlock, Shape::kBlocks)
    tensor_backward_kernel(const Attention<float, S> a) {
  constexpr int depth = Shape::kDepth, threads = Shape::kThreadsOfBlock;
  RG_DYNAMIC_SHARED(char, shared);
  const AttentionCall& call = a.call;
  const int queries = static_cast<int>(call.queries), keys = static_cast<int>(call.keys);
  const int rows = Shape::kByQuery ? queries : keys, others = Shape::kByQuery ? keys : queries;
  const unsigned down = static_cast<unsigned>(rows + Shape::kRows - 1) / Shape::kRows;
  const unsigned matrix = blockIdx.x / down, tile = blockIdx.x - matrix * down;
  const int first = static_cast<int>(Shape::kByQuery ? down - 1 - tile : tile) * Shape::kRows;
  const int own_row = static_cast<int>(threadIdx.x / 32) * kRowTile;  // this warp's, of the tile
  const AttentionPlaces base(a.batch, matrix);
  const Query* const of_query = static_cast<const Query*>(call.delta) + int64_t{matrix} * queries;
  const MatrixRows other[2] = {matrix_rows(a, base, Shape::other_side(0), others, call.depth),
                               matrix_rows(a, base, Shape::other_side(1), others, call.width)};
  int begin = 0, end = others;
  if (call.is_causal && Shape::kByQuery && first + Shape::kRows < end) end = first + Shape::kRows;
  if (call.is_causal && !Shape::kByQuery) begin = first;
  const auto begin_tile = [&](int turn) {
    const int from = begin + turn * Shape::kOthers;
#pragma unroll
    for (int i = 0; i < 2; ++i)
      begin_rows<threads, Shape::kOthers>(Shape::other(shared, turn, i), other[i], from);
    if constexpr (!Shape::kByQuery)
      if (threadIdx.x < Shape::kOthers) {
        const int query = from + static_cast<int>(threadIdx.x);
        begin_copy<8>(Shape::queries(shared, turn) + threadIdx.x, of_query + (query < queries ? query : 0),
                      query < queries ? 8 : 0);
      }
    end_group();
  };

#pragma unroll
  for (int i = 0; i < 2; ++i)
    begin_rows<threads, Shape::kRows>(
        Shape::own(shared, i),
        matrix_rows(a, base, Shape::own_side(i), rows, i == 0 ? call.depth : call.width), first);
  begin_tile(0);
  typename Shape::Own own[2];
  if constexpr (std::is_same_v<typename Shape::Own, RowsInPlace<depth>>)
#pragma unroll
    for (int i = 0; i < 2; ++i) own[i] = {Shape::own(shared, i), own_row};
  Query of_row[2] = {};
  if constexpr (Shape::kByQuery)
    for (int h = 0; h < 2; ++h) {
      const int query = first + own_row + lane_of_warp() / 4 + h * 8;
      if (query < queries) of_row[h] = of_query[query];
    }
  Sums result[2][1][depth / 8] = {};
  const float scale = a.scale * kLog2OfE;
  for (int turn = 0, at = begin; at < end; ++turn, at += Shape::kOthers) {
    wait_for_copies();
    __syncthreads();
    if (at + Shape::kOthers < end) begin_tile(turn + 1);
    if (turn == 0) {
      own[0].load(Shape::own(shared, 0), own_row);
      own[1].load(Shape::own(shared, 1), own_row);
    }
    add_tile<S, Shape>(call, scale, shared, turn, first + own_row, at, own, of_row, result[0], result[1]);
  }
  wait_for_copies();
  __syncthreads();

  const auto write = [&](int i, void* to, float factor, const MatrixRows& like) {
    S* const out = static_cast<S*>(to) + (int64_t{matrix} * rows + first + own_row) * like.pieces * kOfPiece;
    write_rows<S>(result[i], {{factor, factor}}, Shape::own(shared, i), own_row, out, rows - first - own_row,
                  like.pieces);
  };
  write(0, Shape::kByQuery ? call.query_gradient : call.key_gradient, a.scale, other[0]);
  if constexpr (!Shape::kByQuery) write(1, call.value_gradient, 1, other[1]);
}

template <class S, int depth, Of of>
void launch_backward(const Attention<float, S>& a, StreamHandle stream) {
  using Shape = BackwardShape<depth, of>;
  const int64_t rows = Shape::kByQuery ? a.call.queries : a.call.keys;
  const int64_t blocks = (rows + Shape::kRows - 1) / Shape::kRows * a.call.batches;
  if (blocks == 0) return;
  launch(tensor_backward_kernel<S, Shape>,
         {static_cast<unsigned>(blocks), 1, Shape::kThreadsOfBlock, Shape::kShared}, stream, a);
}

template <class S, int depth>
void launch_both(const Attention<float, S>& a, StreamHandle stream) {
  launch_backward<S, depth, Of::query>(a, stream);
  launch_backward<S, depth, Of::key>(a, stream);
}

}  // namespace

template <class S>
void attention_backward_on_tensor_cores(const AttentionCall& call, StreamHandle stream) {
  const Attention<float, S> a(call);
  if (call.queries > 0) launch(delta_kernel<S>, threads_for(call.queries * call.batches * 8), stream, a);
  const bool is_small = call.depth <= 64 && call.width <= 64;
  (is_small ? launch_both<S, 64> : launch_both<S, 128>)(a, stream);
}

template void attention_backward_on_tensor_cores<Half>(const AttentionCall&, StreamHandle);
template void attention_backward_on_tensor_cores<BFloat16>(const AttentionCall&, StreamHandle);

}  // namespace retrograd::cuda::RG_TARGET
