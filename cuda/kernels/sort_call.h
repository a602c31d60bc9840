// Sorting lines of a tensor in plain data: made by cuda/kernels/sort.cc from a Call, used by the launchers of sort.cu.
//
// A value becomes a key: an unsigned number of `bits` bits in the wanted order, for any dtype. Entries with equal keys
// keep the order of their positions, so the result is unique. Depending only on sizes it is computed in one of three
// ways:
//
//   choose  lines of at most kSortTile elements, and longer ones of which few entries are wanted. A team of threads
//   sorts a tile of entries (key, position) in its registers. If a line has several tiles, the first `count` of each
//   are the line of the next round. Short lines need one launch and no memory.
//   sort    other lines, a group of them together, by the library's radix sort over the device: by keys with the number
//   of the line in front of them, or, if that exceeds 64 bits, first by key and then by line. The number of its element
//   in the group accompanies each key.
//   partition  a single line of bool, if many entries are wanted, as for the positions of nonzero elements: the
//   library's partition moves the first ones to the front and reads the line once. It takes 4 bytes per element,
//   whereas a sort takes 16.
//
// Limit: a line has fewer than kMostOfLine elements.
#pragma once

#include <cstddef>

#include "cuda/kernels/axes.h"

struct CUstream_st;

namespace retrograd::inline v0::cuda {

enum class Element : uint8_t;

/// The largest number of entries of a team, and of wanted entries of a line with several tiles.
inline constexpr int kSortTile = 2048, kMostChosen = kSortTile / 8;
inline constexpr int64_t kMostOfLine = (int64_t{1} << 32) - 1;

struct SortCall {
  const void* x = nullptr;
  Element element{};
  int width = 0;                                    // bytes of an element
  Axes<2> lines;                                    // strides of x and of the results
  int64_t length = 0, x_step = 0, result_step = 0;  // of a line
  int64_t count = 0;                                // of a line, in order
  int bits = 0;                                     // of a key
  bool descending = false;
  bool is_plain = false;   // x is int64 from -1 on, and its numbers from 0 on are the keys
  void* values = nullptr;  // null: only the positions are wanted
  int64_t* places = nullptr;

  bool chooses() const { return length <= kSortTile || count <= kMostChosen; }
  bool partitions() const { return width == 1 && bits == 1 && lines.numel == 1 && !chooses(); }
  int64_t entry_bytes() const { return bits <= 32 ? 8 : 16; }
};

/// A round of choosing.
struct SortRound {
  int64_t length = 0;          // of a line
  const void* from = nullptr;  // its entries; null: those of the tensor
  void* to = nullptr;          // for `count` entries of each tile; null: the results

  int64_t tiles() const { return (length + kSortTile - 1) / kSortTile; }
};

/// Lines [first, first + lines) of a call, and memory for them.
struct SortGroup {
  int64_t first = 0, lines = 0;
  int line_bits = 0;                          // of a line's number
  void* keys[2] = {nullptr, nullptr};         // for key_bytes() each element
  uint32_t* numbers[2] = {nullptr, nullptr};  // of elements
  void* room = nullptr;                       // the library's
  int64_t room_bytes = 0;

  /// Whether number and key of an element form one key.
  bool is_joined(const SortCall& call) const { return call.bits + line_bits <= 64; }
  int key_bytes(const SortCall& call) const { return call.bits + line_bits <= 32 ? 4 : 8; }
};

struct SortLaunchers {
  void (*choose)(const SortCall&, const SortRound&, CUstream_st* stream);
  /// Bytes of temporary memory for a group of this many lines.
  int64_t (*room)(const SortCall&, const SortGroup&);
  /// Returns a cudaError_t.
  int (*sort)(const SortCall&, const SortGroup&, CUstream_st* stream);
  /// `places`: memory for the length of the line, and `front` for one number. Only sets `bytes` when room is null.
  /// Returns a cudaError_t.
  int (*partition)(void* room, size_t& bytes, const SortCall&, uint32_t* places, int64_t* front,
                   CUstream_st* stream);
};

}  // namespace retrograd::cuda
