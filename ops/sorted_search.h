// Searching in sorted values, for host and device.
#pragma once

#include <cstdint>

#include "ops/host_device.h"

namespace retrograd::inline v0::ops {

/// Whether `value` is among the `count` values at(0) <= at(1) <= ..., after which NaNs may follow. NaN is not.
template <class At, class V>
RG_HD bool is_among(const At& at, int64_t count, V value) {
  if (count == 0) return false;
  int64_t first = 0;  // the first value that is not less is in [first, first + count)
  while (count > 1) {
    const int64_t half = count / 2;
    first += at(first + half - 1) < value ? half : 0;
    count -= half;
  }
  return at(first) == value;
}

}  // namespace retrograd::ops
