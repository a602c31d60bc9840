// Scans in plain data: made by cuda/kernels/scan.cc from a Call, used by the launchers of cuda/kernels/scan.cu.
#pragma once

#include "cuda/kernels/rows_call.h"

namespace retrograd::inline v0::cuda {

/// In the order of ops::ScanOps and of ops::CumulativeOps.
enum class ScanKind : uint8_t { sum, product, recurrence, shift, largest, smallest, logsumexp };
inline constexpr int kScanKinds = 7;
constexpr bool gives_places(ScanKind kind) { return kind == ScanKind::largest || kind == ScanKind::smallest; }

struct ScanCall {
  RowSide x, b, y;  // b: of a recurrence, whose factors are x; of an extreme, the places, which are written
  bool reverse = false, exclusive = false;
  RowCut cut;
  void* partials = nullptr;  // 16 bytes for each part of each row, if cut.splits > 1
};
using ScanLauncher = void (*)(const ScanCall&, CUstream_st* stream);

/// Elements of a row of int64 in the direction of the scan.
struct IntegerRow {
  const void* x = nullptr;
  void* y = nullptr;
  int64_t x_step = 1, y_step = 1, length = 0;
  bool exclusive = false;
};
/// Only sets `bytes` when room is null. Returns a cudaError_t.
using IntegerScan = int (*)(void* room, size_t& bytes, const IntegerRow&, CUstream_st* stream);

/// By compute type.
struct ScanRow {
  ScanLauncher f32, f64, i64;
  IntegerScan integers;  // of a row; null: not available
};

}  // namespace retrograd::cuda
