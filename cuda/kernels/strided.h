// Strided tensors in a kernel: converts the number of an element to its position in each of several tensors.
//
// An index is decomposed by division by the sizes. A division is a multiplication by a number that is computed before
// the launch (Granlund and Montgomery, Division by invariant integers using multiplication, 1994): with 32 bits below
// 2^31 elements, with 64 bits beyond. The device has no 64-bit division: it would be a function call, for which
// registers are spilled.
#pragma once

#include "cuda/kernels/elements.h"
#include "cuda/kernels/elementwise_call.h"
#include "cuda/kernels/reduce_call.h"

namespace retrograd::inline v0::cuda::RG_TARGET {

/// The upper half of the product.
RG_HD inline uint64_t upper_product(uint64_t a, uint64_t b) {
#if defined(__CUDA_ARCH__)
  return __umul64hi(a, b);
#else
  return static_cast<uint64_t>(static_cast<unsigned __int128>(a) * b >> 64);
#endif
}

/// n / divisor for 0 <= n < `numbers`, divisor >= 1 (0 counts as 1).
class Divider {
 public:
  Divider() = default;
  Divider(int64_t divisor, int64_t numbers)
      : is_wide_(numbers > (int64_t{1} << 31) || divisor >= (int64_t{1} << 31)) {
    const auto d = static_cast<uint64_t>(divisor > 1 ? divisor : 1);
    while ((uint64_t{1} << shift_) < d) ++shift_;
    const auto rest = static_cast<unsigned __int128>((uint64_t{1} << shift_) - d);
    multiplier_ = static_cast<uint64_t>((rest << (is_wide_ ? 64 : 32)) / d + 1);
  }
  RG_HD int64_t operator()(int64_t n) const {
    const auto wide = static_cast<uint64_t>(n);
    if (is_wide_) return static_cast<int64_t>((upper_product(wide, multiplier_) + wide) >> shift_);
    const auto narrow = static_cast<uint32_t>(n);
    const uint64_t product = uint64_t{narrow} * static_cast<uint32_t>(multiplier_);
    return (static_cast<uint32_t>(product >> 32) + narrow) >> shift_;
  }

 private:
  uint64_t multiplier_ = 1;
  uint32_t shift_ = 0;
  bool is_wide_ = false;
};

/// The dims of a call, and the strides of its `Sides` tensors.
template <int Sides>
struct StridedGrid {
  int64_t numel;
  int rank = 0;
  int64_t size[kMaxDims] = {};
  Divider divider[kMaxDims];
  int64_t stride[kMaxDims][Sides] = {};

  explicit StridedGrid(int64_t numel = 1) : numel(numel) {}
  /// Appends a dim.
  void add(int64_t n, const int64_t (&strides)[Sides]) {
    size[rank] = n;
    divider[rank] = Divider(n, numel);
    for (int s = 0; s < Sides; ++s) stride[rank][s] = strides[s];
    ++rank;
  }
};

/// The position of element i in each tensor.
template <int Sides>
class Offsets {
 public:
  RG_HD Offsets(const StridedGrid<Sides>& grid, int64_t i) {
    for (int s = 0; s < Sides; ++s) at_[s] = 0;
    for (int d = grid.rank - 1; d > 0; --d) {
      const int64_t q = grid.divider[d](i);
      add(grid, d, i - q * grid.size[d]);
      i = q;
    }
    add(grid, 0, i);
  }
  RG_HD int64_t operator[](int side) const { return at_[side]; }

 private:
  RG_HD void add(const StridedGrid<Sides>& grid, int d, int64_t index) {
    for (int s = 0; s < Sides; ++s) at_[s] += index * grid.stride[d][s];
  }
  int64_t at_[Sides];
};

/// The dims of one tensor.
inline StridedGrid<1> grid_of(const Dims& dims) {
  StridedGrid<1> grid(dims.numel);
  for (int d = 0; d < dims.rank; ++d) grid.add(dims.size[d], {dims.stride[d]});
  return grid;
}

/// `outer` volumes of three dims.
struct Grid3 {
  int64_t size[3];
  Divider divider[3];

  Grid3(const int64_t (&sizes)[3], int64_t outer) {
    const int64_t all = outer * sizes[0] * sizes[1] * sizes[2];
    for (int d = 0; d < 3; ++d) divider[d] = Divider(size[d] = sizes[d], all);
  }
  /// The position of element i in its volume; returns the volume.
  RG_HD int64_t split(int64_t i, int64_t (&at)[3]) const {
    RG_UNROLL
    for (int d = 2; d >= 0; --d) {
      const int64_t q = divider[d](i);
      at[d] = i - q * size[d];
      i = q;
    }
    return i;
  }
};

/// An elementwise call computed in C, in the form for a kernel. Side 0 is the result.
template <class C, int arity>
struct StridedCall {
  struct Tensor {
    void* data;
    Element element;
  };
  StridedGrid<arity + 1> grid;
  Tensor out, in[arity];
  C number;

  explicit StridedCall(const ElementwiseCall& call)
      : grid(call.numel),
        out{call.out.data, call.out.element},
        number(std::is_same_v<C, int64_t> ? static_cast<C>(call.integer) : static_cast<C>(call.number)) {
    for (int k = 0; k < arity; ++k) in[k] = {call.in[k].data, call.in[k].element};
    for (int d = 0; d < call.rank; ++d) {
      int64_t stride[arity + 1] = {call.out.stride[d]};
      for (int k = 0; k < arity; ++k) stride[k + 1] = call.in[k].stride[d];
      grid.add(call.size[d], stride);
    }
  }
};

}  // namespace retrograd::cuda::RG_TARGET
