// Fault: what a kernel notes of a value that it must not take (an index out of range, a probability above
// one, a singular matrix), in the device's memory. Plain data; see cuda/faults.h and, for kernels,
// cuda/kernels/note.h.
#pragma once

#include <cstdint>

namespace retrograd::cuda {

enum class FaultKind : unsigned { index, value, matrix };
enum class MatrixFailure : int32_t { none, no_permutation, singular, not_positive_definite };

struct Fault {
  unsigned is_taken;       // 0, or 1 from the first fault on, whose kernel fills in the rest
  FaultKind kind;          // which of the others hold
  int64_t index, entries;  // the index, and the number of entries that it is to be below
  double value, least, most;
  MatrixFailure failure;  // of the matrix that is number `index`
  unsigned is_batch;      // it is one of several
  uint64_t op;            // the address of the OpInfo
};

/// Where kernels of an op note their faults.
struct FaultNote {
  Fault* fault = nullptr;
  uint64_t op = 0;
};

}  // namespace retrograd::cuda
