// Products of matrices in device memory, for kernels of other families. See cuda/kernels/matmul.cc.
#pragma once

#include <cstdint>

#include "engine/op.h"

namespace retrograd::inline v0::cuda {

/// out (m, n) = a (m, k) b, or added to out. Rows are contiguous, those of a and out so many elements apart. b is (k, n)
/// or, if turned, the transpose of (n, k); its rows follow each other.
struct RowsProduct {
  int64_t m, n, k;
  const void* a;
  int64_t a_row;
  const void* b;
  bool b_turned;
  void* out;
  int64_t out_row;
  bool accumulate;
};

/// Launched on Gpu::current(), for `call`.
void multiply_rows(const Call& call, ScalarType dtype, const RowsProduct& product);

}  // namespace retrograd::cuda
