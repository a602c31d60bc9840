// Losses over classes in plain data: made by cuda/kernels/class_losses.cc from a Call, used by the launchers of
// cuda/kernels/class_losses.cu.
#pragma once

#include "cuda/fault.h"
#include "cuda/kernels/rows_call.h"

namespace retrograd::inline v0::cuda {

/// Rows are along the classes. For a target, the gradient of a loss, and stats, a row is one element; stats has the
/// largest logits of all samples before their log_sums. A target that is not a class is ignored; forward ops record it
/// unless it equals `ignored`.
struct ClassLossCall {
  RowSide x, target, g, stats, dx;
  int64_t ignored = -100;
  FaultNote note;
  RowCut cut;
  // Results of each row, contiguous.
  void *loss = nullptr, *stats_out = nullptr;
};

using ClassLossLauncher = void (*)(const ClassLossCall&, CUstream_st* stream);

struct ClassLossLaunchers {
  ClassLossLauncher nll;             // x, target: loss
  ClassLossLauncher nll_backward;    // g, target: dx
  ClassLossLauncher cross_entropy;   // x, target: loss, stats_out
  ClassLossLauncher cross_backward;  // g, x, target, stats: dx
};

}  // namespace retrograd::cuda
