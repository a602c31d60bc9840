// Fault: what a kernel notes of an index that is out of range, in the device's memory. Plain data; see
// cuda/faults.h.
#pragma once

#include <cstdint>

namespace retrograd::cuda {

struct Fault {
  unsigned is_taken;       // 0, or 1 from the first fault on, whose kernel fills in the rest
  int64_t index, entries;  // the index, and the number of entries that it is to be below
  uint64_t op;             // the address of the OpInfo
};

}  // namespace retrograd::cuda
