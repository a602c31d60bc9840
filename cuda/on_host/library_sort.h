// Stand-in for CUB's sorts on the host: see cuda/kernels/library_sort.h, which includes it.
//
// Like CUB, it leaves the result in the second memory after an odd number of digits, and in the first after an even
// one. It writes to all of its temporary memory, so that an allocation that is too small is detected.
#pragma once

#include <algorithm>
#include <vector>

namespace retrograd::inline v0::cuda::RG_TARGET {

template <class E, int T>
struct TeamSort {
  struct Room {
    E tile[T * kSortItems];
  };
  static void run(Room& room, int lane) {
    if (lane == 0) std::sort(room.tile, room.tile + T * kSortItems);
    __syncthreads();
  }
};

template <class Key>
void sort_pairs_kernel(Pairs<Key> pairs, char* room, size_t bytes, int result) {
  std::fill(room, room + bytes, char{1});
  const Key mask = static_cast<Key>(~Key{0} >> (8 * sizeof(Key) - static_cast<size_t>(pairs.bits)));
  std::vector<std::pair<Key, uint32_t>> all(pairs.n);
  for (size_t i = 0; i < all.size(); ++i) all[i] = {pairs.keys[0][i], pairs.numbers[0][i]};
  std::stable_sort(all.begin(), all.end(),
                   [&](const auto& a, const auto& b) { return (a.first & mask) < (b.first & mask); });
  for (size_t i = 0; i < all.size(); ++i) {
    pairs.keys[result][i] = all[i].first;
    pairs.numbers[result][i] = all[i].second;
  }
}

template <class Key>
Sorted sort_pairs(void* room, size_t& bytes, const Pairs<Key>& pairs, StreamHandle stream) {
  constexpr int kDigit = 8;
  const int result = (pairs.bits + kDigit - 1) / kDigit % 2;
  if (room)
    launch(sort_pairs_kernel<Key>, {1, 1, 1}, stream, pairs, static_cast<char*>(room), bytes, result);
  else
    bytes = size_t{pairs.n} / 16 + 1;
  return {0, result};
}

template <class F>
void partition_kernel(char* room, size_t bytes, F goes_in_front, uint32_t* places, int64_t* front,
                      int64_t n) {
  std::fill(room, room + bytes, char{1});
  int64_t first = 0, last = n;
  for (int64_t i = 0; i < n; ++i) places[goes_in_front(i) ? first++ : --last] = static_cast<uint32_t>(i);
  *front = first;
}

template <class F>
int partition_places(void* room, size_t& bytes, F goes_in_front, uint32_t* places, int64_t* front, int64_t n,
                     StreamHandle stream) {
  if (room)
    launch(partition_kernel<F>, {1, 1, 1}, stream, static_cast<char*>(room), bytes, goes_in_front, places,
           front, n);
  else
    bytes = static_cast<size_t>(n) / 64 + 1;
  return 0;
}

}  // namespace retrograd::cuda::RG_TARGET
