// The text of a fused kernel: CUDA C++ made of a group's nodes, with each op's own formula
// (cuda/fusion/fused.cuh).
//
// A text depends on ops, dtypes and on how each input is read, not on sizes, numbers or strides: those are parameters.
// So layers of one form share a kernel, and the same group gives the same text in every process. Its parameter is one
// struct. All its members begin at multiples of 8 bytes, in this order:
//
//   int64_t numel                without reductions
//   const T* in0, in1, ...       the inputs
//   T* out0, ...                 the outputs that are not reductions
//   StridedGrid<S> grid          if S inputs are read by strides
//   ReduceCall reduce4, ...      of each reduction, by node
//   Attrs node2, ...             of each node that has some, by node
//
// cuda/fusion/arguments.h fills it in.
#pragma once

#include "cuda/fusion/group.h"

namespace retrograd::inline v0::cuda::fusion {

/// How a kernel reads an input, N neighbours at a time. All but the first two use strides.
enum class Access : uint8_t {
  dense,     // with the layout of the iteration space
  number,    // one element for all
  run,       // the N are adjacent, at a multiple of N
  repeated,  // the N are the same element
  gathered,  // all other cases
};

struct Variant {
  int pack = 1;  // N: 1, 2, 4 or 8; 1 where the group reduces
  std::vector<Access> inputs;
  friend bool operator==(const Variant&, const Variant&) = default;
};

struct Source {
  std::string name;  // of the kernel
  std::string text;
  std::vector<std::string> merges;  // for each reduction, the kernel that merges the parts of rows
};

Source write_source(const Group& group, const Variant& variant);

}  // namespace retrograd::cuda::fusion
