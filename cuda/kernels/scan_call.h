// Scans in plain data: what cuda/kernels/scan.cc makes of a Call, and what the launchers of
// cuda/kernels/scan.cu take.
#pragma once

#include "cuda/kernels/rows_call.h"

namespace retrograd::cuda {

/// In the order of ops::ScanOps.
enum class ScanKind : uint8_t { sum, product, recurrence, shift };
inline constexpr int kScanKinds = 4;

struct ScanCall {
  RowSide x, b, y;  // b: of a recurrence, whose factors are x
  bool reverse = false, exclusive = false;
  RowCut cut;
  void* partials = nullptr;  // 16 bytes for each part of each row, if cut.splits > 1
};
using ScanLauncher = void (*)(const ScanCall&, CUstream_st* stream);

/// By what is computed in.
struct ScanRow {
  ScanLauncher f32, f64, i64;
};

}  // namespace retrograd::cuda
