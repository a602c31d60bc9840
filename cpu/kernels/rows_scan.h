// Running products of a contiguous row of floats: one function per instruction-set level.
//
// Implemented by cpu/kernels/rows_scan.cc. Products are kept in double and rounded where they are stored; their order
// depends on the number of elements alone.
#pragma once

#include <cstdint>

namespace retrograd::cpu {

/// How a row is gone through: from the last element to the first in `reverse`; `exclusive`: y[i] is the product of the
/// elements before x[i] alone. `before`: of what lies in front of the row.
struct ScanWay {
  bool reverse, exclusive;
  double before = 1;
};

namespace baseline {
void scan_products(const float* x, float* y, int64_t n, ScanWay way);
}
namespace avx2 {
void scan_products(const float* x, float* y, int64_t n, ScanWay way);
}
namespace avx512 {
void scan_products(const float* x, float* y, int64_t n, ScanWay way);
}

}  // namespace retrograd::cpu
