// Strided tensors in a kernel: from the number of an element to its place in each of several tensors.
//
// An index is taken apart by division by the sizes. Below 2^31 elements a division is a multiplication by a number that is found before the
// launch (Granlund and Montgomery, Division by invariant integers using multiplication, 1994); beyond, it is a division.
#pragma once

#include "cuda/kernels/elements.h"
#include "cuda/kernels/elementwise_call.h"
#include "cuda/kernels/reduce_call.h"

namespace retrograd::cuda::RG_TARGET {

/// n / divisor for n < 2^31, 1 <= divisor < 2^31.
struct Divider {
  uint32_t multiplier = 1, shift = 0;

  Divider() = default;
  explicit Divider(uint32_t divisor) {
    while ((uint64_t{1} << shift) < divisor) ++shift;
    multiplier = static_cast<uint32_t>((((uint64_t{1} << shift) - divisor) << 32) / divisor + 1);
  }
  RG_HD uint32_t quotient(uint32_t n) const {
    return (static_cast<uint32_t>((uint64_t{n} * multiplier) >> 32) + n) >> shift;
  }
};

/// The dims of a call, and the strides of its `Sides` tensors.
template <int Sides>
struct StridedGrid {
  int64_t numel;
  int rank;
  bool is_wide;  // 2^31 elements or more
  int64_t size[kMaxDims];
  Divider divider[kMaxDims];
  int64_t stride[kMaxDims][Sides];
};

/// Where element i is in each tensor.
template <int Sides>
class Offsets {
 public:
  RG_HD Offsets(const StridedGrid<Sides>& grid, int64_t i) {
    for (int s = 0; s < Sides; ++s) at_[s] = 0;
    for (int d = grid.rank - 1; d > 0; --d) {
      const int64_t q = grid.is_wide ? i / grid.size[d] : grid.divider[d].quotient(static_cast<uint32_t>(i));
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
  StridedGrid<1> grid{dims.numel, dims.rank, dims.numel >= (int64_t{1} << 31), {}, {}, {}};
  for (int d = 0; d < dims.rank; ++d) {
    grid.size[d] = dims.size[d];
    if (!grid.is_wide && dims.size[d] > 0) grid.divider[d] = Divider(static_cast<uint32_t>(dims.size[d]));
    grid.stride[d][0] = dims.stride[d];
  }
  return grid;
}

/// Numbers in row-major order over `outer` grids of three dims: the place in the grid, and which of the grids it is in.
struct Grid3 {
  int64_t size[3];
  Divider divider[3];
  bool is_wide;

  Grid3(const int64_t (&sizes)[3], int64_t outer) : is_wide(false) {
    int64_t all = outer;
    for (int d = 0; d < 3; ++d) all *= size[d] = sizes[d];
    is_wide = all >= (int64_t{1} << 31);
    for (int d = 0; d < 3; ++d)
      if (!is_wide && size[d] > 0) divider[d] = Divider(static_cast<uint32_t>(size[d]));
  }
  RG_HD int64_t split(int64_t i, int64_t (&at)[3]) const {
    for (int d = 2; d >= 0; --d) {
      const int64_t q = is_wide ? i / size[d] : divider[d].quotient(static_cast<uint32_t>(i));
      at[d] = i - q * size[d];
      i = q;
    }
    return i;
  }
};

/// An elementwise call computed in C, as a kernel takes it. Side 0 is the result.
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
      : out{call.out.data, call.out.element},
        number(std::is_same_v<C, int64_t> ? static_cast<C>(call.integer) : static_cast<C>(call.number)) {
    grid.numel = call.numel;
    grid.rank = call.rank;
    grid.is_wide = call.numel >= (int64_t{1} << 31);
    for (int k = 0; k < arity; ++k) in[k] = {call.in[k].data, call.in[k].element};
    for (int d = 0; d < call.rank; ++d) {
      grid.size[d] = call.size[d];
      if (!grid.is_wide) grid.divider[d] = Divider(static_cast<uint32_t>(call.size[d]));
      grid.stride[d][0] = call.out.stride[d];
      for (int k = 0; k < arity; ++k) grid.stride[d][k + 1] = call.in[k].stride[d];
    }
  }
};

}  // namespace retrograd::cuda::RG_TARGET
