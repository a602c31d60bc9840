// Fault: what a kernel notes of a value that it must not take (an index out of range, a probability above
// one), in the device's memory. Plain data; see cuda/faults.h and, for kernels, cuda/kernels/note.h.
#pragma once

#include <cstdint>

namespace retrograd::cuda {

struct Fault {
  unsigned is_taken;       // 0, or 1 from the first fault on, whose kernel fills in the rest
  unsigned is_index;       // index and entries hold, else the others
  int64_t index, entries;  // the index, and the number of entries that it is to be below
  double value, least, most;
  uint64_t op;  // the address of the OpInfo
};

/// Where kernels of an op note their faults.
struct FaultNote {
  Fault* fault = nullptr;
  uint64_t op = 0;
};

}  // namespace retrograd::cuda
