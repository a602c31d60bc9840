// Softmax in plain data: made by cuda/kernels/softmax.cc from a Call, used by the launchers of cuda/kernels/softmax.cu.
#pragma once

#include "cuda/kernels/rows_call.h"

namespace retrograd::inline v0::cuda {

/// In the order of ops::SoftmaxOps.
enum class SoftmaxKind : uint8_t { softmax, log_softmax, softmax_backward, log_softmax_backward };
inline constexpr int kSoftmaxKinds = 4;

struct SoftmaxCall {
  RowSide x, y, out;  // (x, none) or (g, y) and the result
  RowCut cut;
};
using SoftmaxLauncher = void (*)(const SoftmaxCall&, CUstream_st* stream);

struct SoftmaxLaunchers {
  SoftmaxLauncher of_kind[kSoftmaxKinds];
};

}  // namespace retrograd::cuda
