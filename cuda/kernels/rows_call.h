// Tensors as rows along some dims, in plain data: for kernels of softmax, normalisation, class losses and scans.
//
// All sides of a call number rows and elements of a row in the same way; each has its dims merged as its own memory
// allows. The division of rows into blocks and threads depends only on sizes and strides, so that results do not depend
// on the device.
#pragma once

#include "cuda/kernels/reduce_call.h"

namespace retrograd::inline v0::cuda {

struct RowSide {
  void* data = nullptr;  // null: an absent operand
  Element element{};
  Dims rows, along;
  bool is_dense = false;  // contiguous rows, packs of elements at multiples of their size
};

struct RowCut {
  int64_t rows = 0, length = 0;
  bool rows_first = false;  // neighbouring threads take neighbouring rows, not neighbouring elements
  int lanes = 32;           // threads of a row: 8, 32 or 256; with rows_first 8; for scans also 1
  int splits = 1;           // parts of a row, processed by separate blocks
  int64_t part = 0;         // elements of a part, whole packs
};

/// Two sums over a row, or over a part of one.
struct Pair {
  double a, b;
};

}  // namespace retrograd::cuda
