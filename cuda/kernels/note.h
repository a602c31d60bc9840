// How a kernel handles an invalid value, or a matrix that it cannot factor: the first one is recorded (cuda/faults.h).
// The caller is told for every value, and then reads zero or writes nothing; the rest of a matrix is invalid.
//
// Included after cuda/kernels/launch.h.
#pragma once

#include "cuda/fault.h"

namespace retrograd::inline v0::cuda::RG_TARGET {

/// Whether this thread is the one that fills in the fault.
__device__ inline bool takes_note(const FaultNote& note, FaultKind kind) {
  if (atomicCAS(&note.fault->is_taken, 0u, 1u) != 0u) return false;
  note.fault->kind = kind;
  note.fault->op = note.op;
  return true;
}

__device__ inline bool is_in_range(int64_t index, int64_t entries, const FaultNote& note) {
  if (index >= 0 && index < entries) return true;
  if (takes_note(note, FaultKind::index)) {
    note.fault->index = index;
    note.fault->entries = entries;
  }
  return false;
}

/// False for nan.
__device__ inline bool is_between(double value, double least, double most, const FaultNote& note) {
  if (value >= least && value <= most) return true;
  if (takes_note(note, FaultKind::value)) {
    note.fault->value = value;
    note.fault->least = least;
    note.fault->most = most;
  }
  return false;
}

/// Records a failure of matrix `number` of a call.
__device__ inline void note_matrix(const FaultNote& note, MatrixFailure failure, int64_t number,
                                   bool is_batch) {
  if (!takes_note(note, FaultKind::matrix)) return;
  note.fault->failure = failure;
  note.fault->index = number;
  note.fault->is_batch = is_batch;
}

}  // namespace retrograd::cuda::RG_TARGET
