// BatchMatrix: the matrices of a tensor (..., rows, columns), in the form for kernels. Strides are in elements, 0 for a
// repeated dim or a dim of size 1.
#pragma once

#include <cstdint>

namespace retrograd::inline v0::cuda {

struct BatchMatrix {
  void* data = nullptr;
  int64_t row = 0, column = 0;
  int64_t batch[8] = {};  // of each batch dim
};

}  // namespace retrograd::cuda
