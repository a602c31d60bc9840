// Axes: the dims of a launch with the strides of its tensors, in plain data: a NAME.cc makes it from cells, and a
// NAME.cu makes a StridedGrid from it. Dims of size 1 are omitted, and neighbours merged if the strides of all sides
// allow it; finish() leaves at least one.
#pragma once

#include <cstdint>

namespace retrograd::inline v0::cuda {

template <int Sides>
struct Axes {
  int64_t numel = 1;
  int rank = 0;
  int64_t size[8] = {}, stride[8][Sides] = {};

  /// Appends a dim.
  void add(int64_t n, const int64_t (&strides)[Sides]) {
    numel *= n;
    if (n == 1) return;
    const int last = rank - 1;
    bool merges = rank > 0;
    for (int s = 0; merges && s < Sides; ++s) merges = stride[last][s] == n * strides[s];
    if (merges)
      size[last] *= n;
    else
      size[rank++] = n;
    for (int s = 0; s < Sides; ++s) stride[rank - 1][s] = strides[s];
  }
  void finish() {
    if (rank == 0) size[rank++] = 1;
  }
};

}  // namespace retrograd::cuda
