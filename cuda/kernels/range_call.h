// A check of values in plain data: made by cuda/kernels/range.cc from a Call, used by the launcher of
// cuda/kernels/range.cu.
#pragma once

#include "cuda/fault.h"
#include "cuda/kernels/rows_call.h"

namespace retrograd::inline v0::cuda {

struct RangeCall {
  RowSide x;  // one row
  double low = 0, high = 0;
  bool refuses_nan = true;
  bool* result = nullptr;
  FaultNote note;
};
using RangeLauncher = void (*)(const RangeCall&, CUstream_st* stream);

struct RangeLaunchers {
  RangeLauncher check;
};

}  // namespace retrograd::cuda
