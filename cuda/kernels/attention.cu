// Attention without the matrix of weights, forward (Dao et al., FlashAttention).
//
// A block has a tile of queries and a part of the value's columns. It goes through the keys by tiles: the scores of a
// tile, the largest of each row so far, weights exp(score - largest), and the sums of the rows; previous sums are
// rescaled to the new largest.
#include "cuda/kernels/launch.h"
#include "cuda/kernels/launchers.h"

#include "cuda/kernels/attention.cuh"

namespace retrograd::inline v0::cuda::RG_TARGET {
namespace {

// State of a block for each of its queries.
template <class C, class T>
struct RowSums {
  static constexpr int kParts = kThreads / T::kTile, kOfPart = T::kTile / kParts;
  C largest[T::kTile], sum[T::kTile], factor[T::kTile];
  C of_part[kParts][T::kTile];
};

// Scores become weights relative to the largest so far; previous sums must be multiplied by factor.
template <class C, class T>
__device__ void weigh(C* scores, RowSums<C, T>& rows) {
  using R = RowSums<C, T>;
  const int thread = static_cast<int>(threadIdx.x), row = thread % T::kTile, part = thread / T::kTile;
  C* const own = scores + part * R::kOfPart * T::kStep + row;
  const C nothing = static_cast<C>(-scalar::kInfinity);
  C largest = nothing;
  for (int i = 0; i < R::kOfPart; ++i) largest = own[i * T::kStep] > largest ? own[i * T::kStep] : largest;
  rows.of_part[part][row] = largest;
  __syncthreads();
  const C before = rows.largest[row];
  largest = before;
  for (int p = 0; p < R::kParts; ++p)
    largest = rows.of_part[p][row] > largest ? rows.of_part[p][row] : largest;
  __syncthreads();
  const C base = largest == nothing ? C(0) : largest;
  C sum = 0;
  for (int i = 0; i < R::kOfPart; ++i) {
    C& weight = own[i * T::kStep];
    weight = exponential<C>(weight - base);
    sum += weight;
  }
  rows.of_part[part][row] = sum;
  __syncthreads();
  if (part > 0) return;
  rows.factor[row] = exponential<C>(before - base);
  rows.largest[row] = largest;
  sum = rows.sum[row] * rows.factor[row];
  for (int p = 0; p < R::kParts; ++p) sum += rows.of_part[p][row];
  rows.sum[row] = sum;
}

// Blocks: tiles of queries and matrices; parts of the value's columns. Two of them on a multiprocessor: while one
// computes weights, the other multiplies.
template <class C, class S>
__global__ void __launch_bounds__(kThreads) forward_kernel(const Attention<C, S> a) {
  using T = AttentionTiles<C>;
  __shared__ T tiles;
  __shared__ C weights[T::kTile * T::kStep];
  __shared__ RowSums<C, T> rows;
  const AttentionCall& call = a.call;
  const TilePlace place = tile_of_block<T>(call.queries, 1);
  const int64_t first = place.row;
  const int64_t column = static_cast<int64_t>(blockIdx.y) * T::kTile;
  const AttentionPlaces base(a.batch, place.matrix);
  const int thread = static_cast<int>(threadIdx.x), y = thread / T::kAcross, x = thread % T::kAcross;
  const int64_t keys = call.is_causal && first + T::kTile < call.keys ? first + int64_t{T::kTile} : call.keys;
  if (thread < T::kTile) {
    rows.largest[thread] = static_cast<C>(-scalar::kInfinity);
    rows.sum[thread] = 0;
  }
  const auto queries = rows_of(a, base, AttentionCall::kQuery, first, call.queries, call.depth);
  C out[T::kOwn][T::kOwn] = {};
  for (int64_t key = 0; key < keys; key += T::kTile) {
    C score[T::kOwn][T::kOwn] = {};
    multiply_terms(queries, rows_of(a, base, AttentionCall::kKey, key, call.keys, call.depth), 0, call.depth,
                   tiles, score);
    for (int r = 0; r < T::kOwn; ++r)
      for (int c = 0; c < T::kOwn; ++c) {
        const int i = y * T::kOwn + r, j = x * T::kOwn + c;
        weights[j * T::kStep + i] =
            sees<C>(call, first + i, key + j) ? score[r][c] * a.scale : static_cast<C>(-scalar::kInfinity);
      }
    __syncthreads();
    weigh<C, T>(weights, rows);
    __syncthreads();
    for (int r = 0; r < T::kOwn; ++r)
      for (int c = 0; c < T::kOwn; ++c) out[r][c] *= rows.factor[y * T::kOwn + r];
    multiply_weights(weights, columns_of(a, base, AttentionCall::kValue, key, column, call.keys, call.width),
                     tiles, out);
  }
  __syncthreads();
  S* const result =
      static_cast<S*>(call.side[AttentionCall::kOut].data) + place.matrix * call.queries * call.width;
  for (int r = 0; r < T::kOwn; ++r)
    for (int c = 0; c < T::kOwn; ++c) {
      const int64_t i = first + y * T::kOwn + r, j = column + x * T::kOwn + c;
      const C sum = rows.sum[y * T::kOwn + r];
      if (i < call.queries && j < call.width)
        result[i * call.width + j] = converted<S>(sum == 0 ? C(0) : out[r][c] * (1 / sum));
    }
  if (blockIdx.y == 0 && thread < T::kTile && first + thread < call.queries)
    static_cast<C*>(call.side[AttentionCall::kLse].data)[place.matrix * call.queries + first + thread] =
        rows.largest[thread] + scalar::log(scalar::Lane<C>(rows.sum[thread])).v;
}

// If out has no columns, log sum exp is still computed.
template <class C, class S>
void forward(const AttentionCall& call, StreamHandle stream) {
  launch(forward_kernel<C, S>, tiles_of<C>(call.queries, call.width > 0 ? call.width : 1, call.batches),
         stream, Attention<C, S>(call));
}

template <class C, class S>
constexpr AttentionPasses passes{forward<C, S>, attention_backward<C, S>};
template <class S>
constexpr AttentionPasses tensor_core_passes{attention_on_tensor_cores<S>,
                                             attention_backward_on_tensor_cores<S>};

}  // namespace

void add_attention_launchers(Launchers& all) {
  static constexpr AttentionRow row{.f64 = passes<double, double>,
                                    .f32 = passes<float, float>,
                                    .f16 = passes<float, Half>,
                                    .bf16 = passes<float, BFloat16>,
                                    .tensor_f16 = tensor_core_passes<Half>,
                                    .tensor_bf16 = tensor_core_passes<BFloat16>};
  all.attention = &row;
}

}  // namespace retrograd::cuda::RG_TARGET
