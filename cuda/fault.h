// Fault: a kernel's record, in device memory, of an invalid value (an index out of range, a probability above one, a
// singular matrix). Plain data; see cuda/faults.h and, for kernels, cuda/kernels/note.h.
#pragma once

#include <cstdint>

namespace retrograd::inline v0::cuda {

enum class FaultKind : unsigned { index, value, matrix };
enum class MatrixFailure : int32_t { none, no_permutation, singular, not_positive_definite };

struct Fault {
  unsigned is_taken;       // 0, or 1 from the first fault on; its kernel fills in the rest
  FaultKind kind;          // which of the other fields are valid
  int64_t index, entries;  // the index, and its upper bound
  double value, least, most;
  MatrixFailure failure;  // of matrix number `index`
  unsigned is_batch;      // the matrix is one of several
  uint64_t op;            // the address of the OpInfo
};

/// Where the kernels of an op record their faults.
struct FaultNote {
  Fault* fault = nullptr;
  uint64_t op = 0;
};

}  // namespace retrograd::cuda
