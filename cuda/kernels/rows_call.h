// Tensors as rows along some dims, in plain data: what kernels of softmax, normalisation, class losses and
// scans take.
//
// All sides of a call number rows and elements of a row alike; each has its dims merged as its own memory
// allows. How rows are cut over blocks and threads depends on sizes and strides alone, so that results do not
// depend on the device.
#pragma once

#include "cuda/kernels/reduce_call.h"

namespace retrograd::cuda {

struct RowSide {
  void* data = nullptr;  // null: an operand that is not there
  Element element{};
  Dims rows, along;
  bool is_dense = false;  // rows one behind the other, packs of elements at multiples of their size
};

struct RowCut {
  int64_t rows = 0, length = 0;
  bool rows_first = false;  // neighbouring threads take neighbouring rows, not neighbouring elements
  int lanes = 32;           // threads of a row: 8, 32 or 256; with rows_first 8; of scans also 1
  int splits = 1;           // parts of a row, which blocks of their own take
  int64_t part = 0;         // elements of a part, whole packs
};

/// Two sums over a row, or over a part of one.
struct Pair {
  double a, b;
};

}  // namespace retrograd::cuda
