// Sums of products by tiles, in shared memory and registers: common to products, attention and convolutions.
//
// A block of kThreads threads computes kTile x kTile sums, a thread kOwn x kOwn of them in registers. Tiles of kDepth
// terms of both factors pass through shared memory, while the next ones are loaded from memory. A factor is a Source:
//
//   S operator()(int place, int64_t term) const   the element for the tile's row or column `place`, 0 outside the
//                                                 factor
//   bool terms_first                              neighbouring terms are adjacent in memory: neighbouring threads load
//                                                 them
#pragma once

#include "cuda/kernels/launch.h"
#include "ops/host_device.h"

namespace retrograd::inline v0::cuda::RG_TARGET {

RG_HD inline float multiply_add(float a, float b, float c) {
#if defined(__CUDA_ARCH__)
  return ::fmaf(a, b, c);
#else
  return a * b + c;
#endif
}
RG_HD inline double multiply_add(double a, double b, double c) {
#if defined(__CUDA_ARCH__)
  return ::fma(a, b, c);
#else
  return a * b + c;
#endif
}
RG_HD inline uint64_t multiply_add(uint64_t a, uint64_t b, uint64_t c) { return a * b + c; }

/// The type of sums of C: integers wrap around.
template <class C>
struct Summed {
  using Type = C;
};
template <>
struct Summed<int64_t> {
  using Type = uint64_t;
};
template <class C>
using Sum = typename Summed<C>::Type;

template <class S, int tile>
struct Tiles {
  static constexpr int kTile = tile, kDepth = 16;
  static constexpr int kAcross = 16, kOwn = kTile / kAcross;  // threads across a tile; sums of each
  static constexpr int kStep = kTile + 4;                     // other banks for the next term, still 16 bytes
  static constexpr int kFetched = kTile * kDepth / kThreads;  // elements of a factor that a thread loads
  static_assert(kAcross * kAcross == kThreads);
  using Number = S;
  using Own = S[kOwn][kOwn];

  alignas(16) S left[kDepth * kStep];
  alignas(16) S right[kDepth * kStep];
};

/// A thread's share of a tile of a factor.
template <class T>
class Fetched {
 public:
  template <class Source>
  __device__ void read(const Source& source, int thread, int64_t term) {
#pragma unroll
    for (int e = 0; e < T::kFetched; ++e) {
      const int at = thread + e * kThreads;
      place_[e] = source.terms_first ? at / T::kDepth : at % T::kTile;
      depth_[e] = source.terms_first ? at % T::kDepth : at / T::kTile;
      value_[e] = source(place_[e], term + depth_[e]);
    }
  }
  __device__ void put(typename T::Number* tile) const {
#pragma unroll
    for (int e = 0; e < T::kFetched; ++e) tile[depth_[e] * T::kStep + place_[e]] = value_[e];
  }

 private:
  typename T::Number value_[T::kFetched];
  int place_[T::kFetched], depth_[T::kFetched];
};

/// sum += left right over T::kDepth terms in shared memory, for the sums of thread (y, x).
template <class T, class S>
__device__ void multiply_tiles(const S* left, const S* right, int y, int x, typename T::Own& sum) {
#pragma unroll
  for (int l = 0; l < T::kDepth; ++l) {
    S a[T::kOwn], b[T::kOwn];
#pragma unroll
    for (int r = 0; r < T::kOwn; ++r) {
      a[r] = left[l * T::kStep + y * T::kOwn + r];
      b[r] = right[l * T::kStep + x * T::kOwn + r];
    }
#pragma unroll
    for (int r = 0; r < T::kOwn; ++r)
#pragma unroll
      for (int c = 0; c < T::kOwn; ++c) sum[r][c] = multiply_add(a[r], b[c], sum[r][c]);
  }
}

/// sum += the products of terms [begin, end). Called by all threads of the block; `tiles` may be reused after it.
template <class T, class Left, class Right>
__device__ void multiply_terms(const Left& left, const Right& right, int64_t begin, int64_t end, T& tiles,
                               typename T::Own& sum) {
  const int thread = static_cast<int>(threadIdx.x), y = thread / T::kAcross, x = thread % T::kAcross;
  Fetched<T> of_left, of_right;
  of_left.read(left, thread, begin);
  of_right.read(right, thread, begin);
  for (int64_t term = begin; term < end; term += T::kDepth) {
    of_left.put(tiles.left);
    of_right.put(tiles.right);
    __syncthreads();
    if (term + T::kDepth < end) {
      of_left.read(left, thread, term + T::kDepth);
      of_right.read(right, thread, term + T::kDepth);
    }
    multiply_tiles<T>(tiles.left, tiles.right, y, x, sum);
    __syncthreads();
  }
}

/// Calls f(row, column, sum) for the thread's sums, by their positions in the tile. f may be large: its code is
/// generated once, and sums are selected by comparisons, since an array with an index unknown to the compiler would be
/// in memory.
template <class T, class F>
__device__ void for_sums(const typename T::Own& sum, const F& f) {
  const int thread = static_cast<int>(threadIdx.x), y = thread / T::kAcross, x = thread % T::kAcross;
#pragma unroll 1
  for (int e = 0; e < T::kOwn * T::kOwn; ++e) {
    typename T::Number s = 0;
#pragma unroll
    for (int r = 0; r < T::kOwn; ++r)
#pragma unroll
      for (int c = 0; c < T::kOwn; ++c)
        if (e == r * T::kOwn + c) s = sum[r][c];
    f(y * T::kOwn + e / T::kOwn, x * T::kOwn + e % T::kOwn, s);
  }
}

/// Which tile of which matrix of a batch a block computes: blockIdx.x counts tiles along rows, then rows of
/// tiles, then matrices.
struct TilePlace {
  int64_t row, column;
  unsigned matrix;
};
template <class T>
__device__ TilePlace tile_of_block(int64_t rows, int64_t columns) {
  constexpr unsigned tile = T::kTile;
  const auto across = static_cast<unsigned>((columns + tile - 1) / tile);
  const auto down = static_cast<unsigned>((rows + tile - 1) / tile);
  const unsigned line = blockIdx.x / across, matrix = line / down;
  return {int64_t{line - matrix * down} * tile, int64_t{blockIdx.x - line * across} * tile, matrix};
}

}  // namespace retrograd::cuda::RG_TARGET
