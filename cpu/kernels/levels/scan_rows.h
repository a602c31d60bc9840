// Running products of a contiguous row of floats: one function per instruction-set level. Implemented by
// scan_rows.cc.
//
// Products are kept in double and rounded where they are stored; their order depends on the number of elements alone.
// A row may be scanned in pieces, if each piece gets the product of the elements before it (ScanWay::before). Scans
// of other ops and dtypes are plain loops in cpu/kernels/scan.cc.
#pragma once

#include <cstdint>

#include "cpu/levels.h"

namespace retrograd::inline v0::cpu {

/// How a row is gone through: from the last element to the first in `reverse`; `exclusive`: y[i] is the product of the
/// elements before x[i] alone. `before`: of what lies in front of the row.
struct ScanWay {
  bool reverse, exclusive;
  double before = 1;
};

RG_EACH_LEVEL(void scan_products(const float* x, float* y, int64_t n, ScanWay way);)
/// y[i] = the product of x[0..i], in the order and of the elements that `way` says; by the best level.
inline void scan_products(const float* x, float* y, int64_t n, ScanWay way) {
  RG_RETURN_BEST_LEVEL(scan_products(x, y, n, way));
}

}  // namespace retrograd::cpu
