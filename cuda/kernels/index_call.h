// Reading and writing at positions that a tensor holds, in plain data: what cuda/kernels/index.cc makes of a
// Call, and what the launchers of index.cu take.
//
// Reading is one kernel: gather, index_select and embedding differ in the strides by which they go through
// their index. Writing has two steps. First each position of the index becomes a target: the place that it
// names, or kNowhere. Then the source's parts go to their targets: where one is named more than once, sums
// are made by one thread in order of position (sorted by target, cuda/kernels/sort_call.h), and of plain
// writes the last position stays.
#pragma once

#include "cuda/fault.h"
#include "cuda/kernels/axes.h"

struct CUstream_st;

namespace retrograd::cuda {

enum class Element : uint8_t;

inline constexpr int64_t kNowhere = -1;

/// Of each element of a dense result the one that it reads: x[place of the element + index * step].
struct GatherCall {
  const void* x = nullptr;
  const int64_t* index = nullptr;
  void* out = nullptr;
  int width = 0;  // bytes of an element
  Axes<2> dims;   // of the result, with the strides of index and x; x's is 0 where the index stands
  int64_t entries = 0, step = 0;  // of the dim that the index is about
  int64_t blank = kNowhere;       // reads as zero
  FaultNote note;
};

/// target[p] = place of position p + index * step.
struct TargetCall {
  const int64_t* index = nullptr;  // null: no index, only places
  int64_t* target = nullptr;
  Axes<2> positions;  // strides of index and of places
  int64_t entries = 0, step = 0;
  int64_t skip = kNowhere;  // an index that goes nowhere
  FaultNote note;
};

/// Parts of src written or added to out at target * unit. A part is `rest`, from where a position of
/// `positions` lies.
struct PutCall {
  void* out = nullptr;
  const void* src = nullptr;  // null: a number
  Element element{};
  int width = 0;
  const int64_t* target = nullptr;
  Axes<1> positions;  // strides of src
  Axes<2> rest;       // strides of out and src
  int64_t unit = 1;
  const int64_t* order = nullptr;  // of sums: positions by target, in order; null when none is named twice
  unsigned* winner =
      nullptr;          // of writes: for 1 + the last position of each target; null when all write the same
  int64_t targets = 0;  // the length of `winner`
  bool mean = false;    // sums are divided by their number of parts
  bool apart = false;   // a sum begins at 0, is rounded, and then added to what is there
  uint64_t number = 0;  // its bits
};

/// The next dim of a flat index: out = out * size + index, which counts from the end when negative.
struct FlatCall {
  const int64_t* index = nullptr;
  int64_t* out = nullptr;
  Axes<1> dims;
  int64_t size = 0;
  bool is_first = false;
  FaultNote note;
};

struct IndexLaunchers {
  void (*gather)(const GatherCall&, CUstream_st* stream);
  void (*target)(const TargetCall&, CUstream_st* stream);
  void (*flat)(const FlatCall&, CUstream_st* stream);
  void (*write)(const PutCall&, CUstream_st* stream);
  // By what is summed in.
  void (*add_f32)(const PutCall&, CUstream_st* stream);
  void (*add_f64)(const PutCall&, CUstream_st* stream);
  void (*add_i64)(const PutCall&, CUstream_st* stream);
};

}  // namespace retrograd::cuda
