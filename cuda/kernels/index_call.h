// Reading and writing at positions in a tensor, in plain data: made by cuda/kernels/index.cc from a Call, used by the
// launchers of index.cu.
//
// Reading is one kernel: gather, index_select and embedding differ in the strides by which they go through their index.
// Writing has two steps. First each position of the index becomes a target: the element that it selects, or kNowhere.
// Then the parts of the source are written to their targets. If a target occurs more than once, one thread reduces in
// order of position (sorted by target, cuda/kernels/sort_call.h), and of plain writes the last position counts.
#pragma once

#include "cuda/fault.h"
#include "cuda/kernels/axes.h"
#include "ops/scatter_reduction.h"

struct CUstream_st;

namespace retrograd::inline v0::cuda {

enum class Element : uint8_t;

inline constexpr int64_t kNowhere = -1;

/// Each element of a dense result reads x[its position + index * step].
struct GatherCall {
  const void* x = nullptr;
  const int64_t* index = nullptr;
  void* out = nullptr;
  int width = 0;  // bytes of an element
  Axes<2> dims;   // of the result, with the strides of index and x; that of x is 0 in the indexed dim
  int64_t entries = 0, step = 0;  // of the indexed dim
  int64_t blank = kNowhere;       // reads as zero
  FaultNote note;
};

/// target[p] = place of position p + index * step.
struct TargetCall {
  const int64_t* index = nullptr;  // null: only places
  int64_t* target = nullptr;
  Axes<2> positions;  // strides of index and of places
  int64_t entries = 0, step = 0;
  int64_t skip = kNowhere;  // an index that is skipped
  FaultNote note;
};

/// Parts of src are written to out, or reduced into it, at target * unit. A part has the dims `rest`, and begins at a
/// position of `positions`.
struct PutCall {
  void* out = nullptr;
  const void* src = nullptr;  // null: a number
  Element element{};
  int width = 0;
  const int64_t* target = nullptr;
  Axes<1> positions;  // strides of src
  Axes<2> rest;       // strides of out and src
  int64_t unit = 1;
  // For reductions: positions sorted by target; null when no target occurs twice.
  const int64_t* order = nullptr;
  // For writes: 1 + the last position of each target; null when all write the same.
  unsigned* winner = nullptr;
  int64_t targets = 0;  // the length of `winner`
  ops::ScatterReduction how{};
  bool include_self = true;  // what is there takes part in the reduction
  bool apart = false;        // the rounded result is then added to what is there
  uint64_t number = 0;       // its bits
};

/// Whether each element of x is among sorted values, or is not.
struct IsInCall {
  const void *x = nullptr, *sorted = nullptr;
  bool* out = nullptr;
  Element element{};
  Axes<1> dims;                 // strides of x
  int64_t count = 0, step = 0;  // of the sorted values
  bool invert = false;
};

/// Appends a dim to a flat index: out = out * size + index, where a negative index counts from the end.
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
  // By the type of reductions.
  void (*reduce_f32)(const PutCall&, CUstream_st* stream);
  void (*reduce_f64)(const PutCall&, CUstream_st* stream);
  void (*reduce_i64)(const PutCall&, CUstream_st* stream);
  // By the type of comparisons.
  void (*is_in_f32)(const IsInCall&, CUstream_st* stream);
  void (*is_in_f64)(const IsInCall&, CUstream_st* stream);
  void (*is_in_i64)(const IsInCall&, CUstream_st* stream);
};

}  // namespace retrograd::cuda
