// Sorting lines of a tensor in plain data: what cuda/kernels/sort.cc makes of a Call, and what the launchers
// of sort.cu take.
//
// An entry is a key, unsigned and in the order wanted, and the place of its element in the line: 8 bytes, or
// 16 where key or place need more than 32 bits. No two entries are equal, so the order is the same, and
// stable, however they are sorted. A line is cut into runs that a block sorts; then runs are merged by pairs,
// from one memory into the other. When only the first `count` are wanted runs are cut to that length.
#pragma once

#include "cuda/kernels/axes.h"

struct CUstream_st;

namespace retrograd::cuda {

enum class Element : uint8_t;

/// Entries that a block sorts.
inline constexpr int kSortTile = 2048;

struct SortCall {
  const void* x = nullptr;
  Element element{};
  int width = 0;                                    // bytes of an element
  Axes<2> lines;                                    // strides of x and of the results
  int64_t length = 0, x_step = 0, result_step = 0;  // of a line
  int64_t count = 0;                                // of it, in order
  bool descending = false;
  bool is_wide = false;   // entries have 16 bytes
  bool is_plain = false;  // x is int64 from -1 on; its low 32 bits, unsigned, are keys
  // Memory for room() entries each; the second one if runs() > 1.
  void* entries[2] = {nullptr, nullptr};
  void* values = nullptr;  // null: only the places are wanted
  int64_t* places = nullptr;

  /// Of a line: sizes of a run in entries, and in memory; runs.
  int64_t run() const {
    int64_t n = 1;
    while (n < length && n < kSortTile) n *= 2;
    return n;
  }
  int64_t pitch() const { return run() < count ? run() : count; }
  int64_t runs() const { return (length + run() - 1) / run(); }
  /// The most that any pass has in memory, where the last run of a line takes as much as a whole one.
  int64_t room() const {
    int64_t most = runs() * pitch();
    for (int64_t n = runs(), size = pitch(); n > 1;) {
      n = (n + 1) / 2;
      size = 2 * size < count ? 2 * size : count;
      if (n * size > most) most = n * size;
    }
    return lines.numel * most;
  }
};

struct SortLaunchers {
  void (*sort)(const SortCall&, CUstream_st* stream);
};

}  // namespace retrograd::cuda
