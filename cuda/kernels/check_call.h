// The first value of a tensor that is not within bounds, in plain data: see cuda/kernels/check.h and
// check.cu.
#pragma once

#include "cuda/kernels/rows_call.h"

namespace retrograd::cuda {

/// Where a bad value is, in row-major order, and the value; -1 if there is none.
struct BadValue {
  int64_t place;
  int64_t integer;  // of integers
  double value;     // of others
};

/// A value is good if least <= value <= most, or if it is `ignored`.
struct CheckCall {
  RowSide x;  // rows are its elements
  bool is_integer = false;
  int64_t least = 0, most = 0, ignored = 0;  // of integers
  double lowest = 0, highest = 0;            // of others
  int blocks = 1;
  BadValue* found = nullptr;  // of each block the first that it saw
};
using CheckLauncher = void (*)(const CheckCall&, CUstream_st* stream);

}  // namespace retrograd::cuda
