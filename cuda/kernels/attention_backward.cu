// Attention backward, from log sum exp (lse) and delta = g . out of each row: weights p = exp(score - lse), ds = p * (g
// value' - delta);
//
//   gradient of query = scale * ds key, of key = scale * ds' query, of value = p' g
//
// are three launches of one kernel, each of which recomputes the tiles of weights: no sum combines two blocks, so bits
// do not depend on their order.
#include "cuda/kernels/launch.h"

#include "cuda/kernels/attention.cuh"

namespace retrograd::inline v0::cuda::RG_TARGET {
namespace {

// One warp for each query: g . out.
template <class C, class S>
__global__ void __launch_bounds__(kThreads) delta_kernel(const Attention<C, S> a) {
  const AttentionCall& call = a.call;
  const int64_t query = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x % 32);
  if (query >= call.batches * call.queries) return;  // all lanes of a warp
  const int64_t matrix = a.of_matrix(query), row = query - matrix * call.queries;
  const AttentionPlaces base(a.batch, matrix);
  const BatchMatrix &g = call.side[AttentionCall::kG], &out = call.side[AttentionCall::kOut];
  const S* const left = static_cast<const S*>(g.data) + base[AttentionCall::kG] + row * g.row;
  const S* const right = static_cast<const S*>(out.data) + base[AttentionCall::kOut] + row * out.row;
  C sum = 0;
  for (int64_t j = lane; j < call.width; j += 32)
    sum = multiply_add(converted<C>(left[j * g.column]), converted<C>(right[j * out.column]), sum);
  for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(~0u, sum, static_cast<unsigned>(step));
  if (lane == 0) static_cast<C*>(call.delta)[query] = sum;
}

enum class Of { query, key, value };

// One tile of p or of scale * ds, a row of `weights` for each term: keys for the gradient of query, else queries.
template <Of of, class C, class S, class T>
__device__ void backward_weights(const Attention<C, S>& a, const AttentionPlaces& base, int64_t matrix,
                                 int64_t own, int64_t other, T& tiles, C* weights) {
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
template <class C, class S, Of of>
__global__ void __launch_bounds__(kThreads) backward_kernel(const Attention<C, S> a, S* result) {
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
  const AttentionPlaces base(a.batch, matrix);
  int64_t begin = 0, end = others;
  if (call.is_causal && by_query && first + T::kTile < end) end = first + T::kTile;
  if (call.is_causal && !by_query) begin = first;
  C sum[T::kOwn][T::kOwn] = {};
  for (int64_t other = begin; other < end; other += T::kTile) {
    backward_weights<of>(a, base, matrix, first, other, tiles, weights);
    multiply_weights(weights, columns_of(a, base, factor, other, column, others, columns), tiles, sum);
  }
  const int thread = static_cast<int>(threadIdx.x), y = thread / T::kAcross, x = thread % T::kAcross;
  S* const out = result + matrix * rows * columns;
  for (int r = 0; r < T::kOwn; ++r)
    for (int c = 0; c < T::kOwn; ++c) {
      const int64_t i = first + y * T::kOwn + r, j = column + x * T::kOwn + c;
      if (i < rows && j < columns) out[i * columns + j] = converted<S>(sum[r][c]);
    }
}

template <Of of, class C, class S>
void launch_backward(const Attention<C, S>& a, int64_t rows, int64_t columns, void* result,
                     StreamHandle stream) {
  if (rows * columns * a.call.batches == 0) return;
  launch(backward_kernel<C, S, of>, tiles_of<C>(rows, columns, a.call.batches), stream, a,
         static_cast<S*>(result));
}

}  // namespace

template <class C, class S>
void attention_backward(const AttentionCall& call, StreamHandle stream) {
  const Attention<C, S> a(call);
  if (call.queries * call.batches > 0)
    launch(delta_kernel<C, S>, threads_for(call.queries * call.batches * 32), stream, a);
  launch_backward<Of::query>(a, call.queries, call.depth, call.query_gradient, stream);
  launch_backward<Of::key>(a, call.keys, call.depth, call.key_gradient, stream);
  launch_backward<Of::value>(a, call.keys, call.width, call.value_gradient, stream);
}

template void attention_backward<double, double>(const AttentionCall&, StreamHandle);
template void attention_backward<float, float>(const AttentionCall&, StreamHandle);
template void attention_backward<float, Half>(const AttentionCall&, StreamHandle);
template void attention_backward<float, BFloat16>(const AttentionCall&, StreamHandle);

}  // namespace retrograd::cuda::RG_TARGET
