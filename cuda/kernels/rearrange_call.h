// Triangles and padding in plain data: made by cuda/kernels/rearrange.cc from a Call, used by the launchers of
// rearrange.cu. Copies that are regions of memory (cat, flip) need no kernel of their own.
#pragma once

#include "cuda/kernels/axes.h"

struct CUstream_st;

namespace retrograd::inline v0::cuda {

enum class Element : uint8_t;

/// Contiguous matrices: the elements on one side of a diagonal, with zeros on the other.
struct TriangleCall {
  const void* x = nullptr;
  void* out = nullptr;
  int width = 0;  // bytes of an element
  Axes<1> dims;   // of x
  int64_t rows = 1, columns = 1, diagonal = 0;
  bool upper = false;
};

enum class PadMode : uint8_t { reflect, replicate, circular };

/// A dim before (small) and after it is padded; neighbours that are not padded count as one.
struct PadDim {
  int64_t small, large, before;
  int64_t first, kept;  // for circular ones: entries [first, first + kept) are shown, the others are cut off
  int64_t stride;       // of the operand
};

/// Padding, or backward, where the operand is the large tensor and the result the small one. Results are dense.
struct PadCall {
  const void* x = nullptr;
  void* out = nullptr;
  Element element{};
  int width = 0;
  PadMode mode{};
  int rank = 0;
  PadDim dim[8] = {};
  int64_t numel = 1;  // of the result
};

struct RearrangeLaunchers {
  void (*triangle)(const TriangleCall&, CUstream_st* stream);
  void (*pad)(const PadCall&, CUstream_st* stream);
  // By the type of sums.
  void (*pad_backward_f32)(const PadCall&, CUstream_st* stream);
  void (*pad_backward_f64)(const PadCall&, CUstream_st* stream);
  void (*pad_backward_i64)(const PadCall&, CUstream_st* stream);
};

}  // namespace retrograd::cuda
