// Losses over classes in plain data: what cuda/kernels/class_losses.cc makes of a Call, and what the
// launchers of cuda/kernels/class_losses.cu take.
#pragma once

#include "cuda/fault.h"
#include "cuda/kernels/rows_call.h"

namespace retrograd::cuda {

/// Rows are along the classes; of a target, a gradient of a loss, and log_sum a row is one element. A target that
/// is not a class counts for nothing, and is noted by forward ops if it is not `ignored`.
struct ClassLossCall {
  RowSide x, target, g, log_sum, dx;
  int64_t ignored = -100;
  FaultNote note;
  RowCut cut;
  // Results of each row, one behind the other.
  void *loss = nullptr, *log_sum_out = nullptr;
};

using ClassLossLauncher = void (*)(const ClassLossCall&, CUstream_st* stream);

struct ClassLossLaunchers {
  ClassLossLauncher nll;             // x, target: loss
  ClassLossLauncher nll_backward;    // g, target: dx
  ClassLossLauncher cross_entropy;   // x, target: loss, log_sum_out
  ClassLossLauncher cross_backward;  // g, x, target, log_sum: dx
};

}  // namespace retrograd::cuda
