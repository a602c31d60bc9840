// Attention backward, from log sum exp (lse) and delta = g . out of each row: weights p = exp(score - lse), ds = p * (g value' - delta);
//
//   gradient of query = scale * ds key, of key = scale * ds' query, of value = p' g
//
// are three launches of one kernel, each of which computes the tiles of weights anew: nothing is added from two blocks, so bits do not
// depend on their order.
#include "cuda/kernels/launch.h"

#include "cuda/kernels/attention.cuh"

namespace retrograd::cuda::RG_TARGET {
namespace {

// A warp for each query: g . out.
template <class C>
__global__ void __launch_bounds__(kThreads) delta_kernel(const Attention<C> a) {
  const AttentionCall& call = a.call;
  const int64_t query = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x % 32);
  if (query >= call.batches * call.queries) return;  // all lanes of a warp
  const int64_t matrix = a.of_matrix(query), row = query - matrix * call.queries;
  const typename Attention<C>::Places base(a.batch, matrix);
  const BatchMatrix &g = call.side[AttentionCall::kG], &out = call.side[AttentionCall::kOut];
  const C* const left = static_cast<const C*>(g.data) + base[AttentionCall::kG] + row * g.row;
  const C* const right = static_cast<const C*>(out.data) + base[AttentionCall::kOut] + row * out.row;
  C sum = 0;
  for (int64_t j = lane; j < call.width; j += 32)
    sum = multiply_add(left[j * g.column], right[j * out.column], sum);
  for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(~0u, sum, static_cast<unsigned>(step));
  if (lane == 0) static_cast<C*>(call.delta)[query] = sum;
}

enum class Of { query, key, value };

// One tile of p or of scale * ds, a row of `weights` for each term: keys for the gradient of query, else queries.
template <class C, Of of, class T>
__device__ void backward_weights(const Attention<C>& a, const typename Attention<C>::Places& base,
                                 int64_t matrix, int64_t own, int64_t other, T& tiles, C* weights) {
  const AttentionCall& call = a.call;
  constexpr bool by_query = of == Of::query;
  const int64_t query = by_query ? own : other, key = by_query ? other : own;
  const auto queries = rows_of(a, base, AttentionCall::kQuery, query, call.queries, call.depth);
  const auto keys = rows_of(a, base, AttentionCall::kKey, key, call.keys, call.depth);
  C score[T::kOwn][T::kOwn] = {}, slope[T::kOwn][T::kOwn] = {};
  multiply_terms(queries, keys, 0, call.depth, tiles, score);
  if constexpr (of != Of::value) {
    const auto g = rows_of(a, base, AttentionCall::kG, query, call.queries, call.width);
    const auto values = rows_of(a, base, AttentionCall::kValue, key, call.keys, call.width);
    multiply_terms(g, values, 0, call.width, tiles, slope);
  }
  const BatchMatrix& lse = call.side[AttentionCall::kLse];
  const C* const lses = static_cast<const C*>(lse.data) + base[AttentionCall::kLse];
  const C* const deltas = static_cast<const C*>(call.delta) + matrix * call.queries;
  const int thread = static_cast<int>(threadIdx.x), y = thread / T::kAcross, x = thread % T::kAcross;
  for (int r = 0; r < T::kOwn; ++r) {
    const int i = y * T::kOwn + r;
    const bool is_there = query + i < call.queries;
    const C lse_of_row = is_there ? lses[(query + i) * lse.row] : C(0);
    const C delta = is_there ? deltas[query + i] : C(0);
    for (int c = 0; c < T::kOwn; ++c) {
      const int j = x * T::kOwn + c;
      C w = 0;
      if (sees<C>(call, query + i, key + j)) {
        w = exponential<C>(score[r][c] * a.scale - lse_of_row);
        if constexpr (of != Of::value) w *= (slope[r][c] - delta) * a.scale;
      }
      weights[by_query ? j * T::kStep + i : i * T::kStep + j] = w;
    }
  }
  __syncthreads();
}

// Blocks: tiles of the operand's rows and matrices; parts of its columns.
template <class C, Of of>
__global__ void __launch_bounds__(kThreads) backward_kernel(const Attention<C> a, C* result) {
  using T = AttentionTiles<C>;
  __shared__ T tiles;
  __shared__ C weights[T::kTile * T::kStep];
  const AttentionCall& call = a.call;
  constexpr bool by_query = of == Of::query;
  constexpr int factor = by_query        ? AttentionCall::kKey
                         : of == Of::key ? AttentionCall::kQuery
                                         : AttentionCall::kG;
  const int64_t rows = by_query ? call.queries : call.keys, others = by_query ? call.keys : call.queries;
  const int64_t columns = of == Of::value ? call.width : call.depth;
  const TilePlace place = tile_of_block<T>(rows, 1);
  const int64_t first = place.row, matrix = place.matrix;
  const int64_t column = static_cast<int64_t>(blockIdx.y) * T::kTile;
  const typename Attention<C>::Places base(a.batch, matrix);
  int64_t begin = 0, end = others;
  if (call.is_causal && by_query && first + T::kTile < end) end = first + T::kTile;
  if (call.is_causal && !by_query) begin = first;
  C sum[T::kOwn][T::kOwn] = {};
  for (int64_t other = begin; other < end; other += T::kTile) {
    backward_weights<C, of>(a, base, matrix, first, other, tiles, weights);
    multiply_weights(weights, columns_of(a, base, factor, other, column, others, columns), tiles, sum);
  }
  const int thread = static_cast<int>(threadIdx.x), y = thread / T::kAcross, x = thread % T::kAcross;
  C* const out = result + matrix * rows * columns;
  for (int r = 0; r < T::kOwn; ++r)
    for (int c = 0; c < T::kOwn; ++c) {
      const int64_t i = first + y * T::kOwn + r, j = column + x * T::kOwn + c;
      if (i < rows && j < columns) out[i * columns + j] = sum[r][c];
    }
}

template <class C, Of of>
void launch_backward(const Attention<C>& a, int64_t rows, int64_t columns, void* result,
                     StreamHandle stream) {
  if (rows * columns * a.call.batches == 0) return;
  launch(backward_kernel<C, of>, tiles_of<C>(rows, columns, a.call.batches), stream, a,
         static_cast<C*>(result));
}

template <class C>
void backward(const AttentionCall& call, StreamHandle stream) {
  const Attention<C> a(call);
  if (call.queries * call.batches > 0)
    launch(delta_kernel<C>, threads_for(call.queries * call.batches * 32), stream, a);
  launch_backward<C, Of::query>(a, call.queries, call.depth, call.query_gradient, stream);
  launch_backward<C, Of::key>(a, call.keys, call.depth, call.key_gradient, stream);
  launch_backward<C, Of::value>(a, call.keys, call.width, call.value_gradient, stream);
}

}  // namespace

void attention_backward_f32(const AttentionCall& call, StreamHandle stream) { backward<float>(call, stream); }
void attention_backward_f64(const AttentionCall& call, StreamHandle stream) {
  backward<double>(call, stream);
}

}  // namespace retrograd::cuda::RG_TARGET
