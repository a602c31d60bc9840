// The sorts of CUB that retrograd's kernels use. CUB needs nvcc: in code for the host the same functions are made of
// the standard library (cuda/on_host/library_sort.h), so that the code around them is tested without a device.
//
//   TeamSort     T threads of a block sort kSortItems * T entries in shared memory
//   sort_pairs   pairs of key and number over the whole device, by digits: stable
//   partition_places  the numbers below n, with the wanted ones in front, over the whole device
//
// It uses warp- and block-wise merge sorts, and DeviceRadixSort and DevicePartition, which are put on the stream
// without waiting and may be captured. It does not use DeviceSegmentedSort: from 500 segments on it waits for the
// device. DeviceSegmentedRadixSort, with one block per segment, reads everything twice per digit and leaves the device
// mostly idle with few segments; the number of the segment in front of the key costs a digit or two.
//
// Included after cuda/kernels/launch.h.
#pragma once

#if defined(__CUDACC__)
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <cub/block/block_merge_sort.cuh>
#include <cub/device/device_partition.cuh>
#include <cub/device/device_radix_sort.cuh>
#include <cub/warp/warp_merge_sort.cuh>
#endif

namespace retrograd::inline v0::cuda::RG_TARGET {

/// Entries of a thread in a team.
inline constexpr int kSortItems = 8;

/// n pairs in the first of two memories each, to be sorted by the lowest `bits` of their keys.
template <class Key>
struct Pairs {
  Key* keys[2];
  uint32_t* numbers[2];
  uint32_t n;
  int bits;
};

struct Sorted {
  int status;  // a cudaError_t
  int side;    // in which of the two memories the result is
};

}  // namespace retrograd::cuda::RG_TARGET

#if defined(__CUDACC__)

namespace retrograd::inline v0::cuda::RG_TARGET {

template <class E, int T>
struct TeamSort {
  using Library = std::conditional_t<(T <= 32), cub::WarpMergeSort<E, kSortItems, (T <= 32 ? T : 1)>,
                                     cub::BlockMergeSort<E, T, kSortItems>>;
  union Room {
    E tile[T * kSortItems];
    typename Library::TempStorage library;
  };
  struct Less {
    __device__ bool operator()(const E& a, const E& b) const { return a < b; }
  };

  /// Sorts room.tile. Called by all threads of the block, which are synchronised before and after it.
  __device__ static void run(Room& room, int lane) {
    E own[kSortItems];
    for (int k = 0; k < kSortItems; ++k) own[k] = room.tile[k * T + lane];  // in any order
    Library(room.library).Sort(own, Less());  // writes only after all threads of the team have read
    __syncthreads();
    for (int k = 0; k < kSortItems; ++k) room.tile[lane * kSortItems + k] = own[k];
  }
};

/// Only sets `bytes` when room is null.
template <class Key>
Sorted sort_pairs(void* room, size_t& bytes, const Pairs<Key>& pairs, StreamHandle stream) {
  cub::DoubleBuffer<Key> keys(pairs.keys[0], pairs.keys[1]);
  cub::DoubleBuffer<uint32_t> numbers(pairs.numbers[0], pairs.numbers[1]);
  const int status =
      cub::DeviceRadixSort::SortPairs(room, bytes, keys, numbers, pairs.n, 0, pairs.bits, stream);
  return {status, numbers.selector};
}

/// The `front` positions for which `goes_in_front` is true come first, in order; all others follow in reverse order. n
/// < 2^32. Only sets `bytes` when room is null. Returns a cudaError_t.
template <class F>
int partition_places(void* room, size_t& bytes, F goes_in_front, uint32_t* places, int64_t* front, int64_t n,
                     StreamHandle stream) {
  const auto flags = thrust::make_transform_iterator(thrust::counting_iterator<int64_t>(0), goes_in_front);
  return cub::DevicePartition::Flagged(room, bytes, thrust::counting_iterator<uint32_t>(0), flags, places,
                                       front, n, stream);
}

}  // namespace retrograd::cuda::RG_TARGET

#else
#include "cuda/on_host/library_sort.h"
#endif
