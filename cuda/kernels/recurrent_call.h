// One step of recurrent cells over a batch in plain data: made by cuda/kernels/recurrent.cc from a Call, used by the
// launchers of cuda/kernels/recurrent.cu. A tensor of one step is dense: a row for each sequence. See ops/recurrent.h.
#pragma once

#include <cstdint>

#include "cuda/fault.h"

struct CUstream_st;

namespace retrograd::inline v0::cuda {

enum class CellKind : uint8_t { lstm, gru, tanh, relu };

struct CellStep {
  CellKind kind{};
  bool is_double = false;
  int64_t batch = 0, hidden = 0;
  int64_t time = 0, steps = 0;
  const int64_t* lengths = nullptr;                  // null: all sequences have all steps
  FaultNote note;                                    // of a length that is out of range, if it has a fault
  const void *projected = nullptr, *bias = nullptr;  // of a GRU; the bias may be null
  const void *h_before = nullptr, *c_before = nullptr;
  void* gates = nullptr;            // 4 rows each: sums of an LSTM, U h of a GRU; become the gates
  void *h = nullptr, *c = nullptr;  // h: sums of a simple RNN
};

/// A step of the gated recurrence, or of its transpose.
struct GatedRecurrenceStep {
  bool is_double = false, has_cell = false;
  int64_t batch = 0, hidden = 0, gates = 0;
  int64_t time = 0;
  const int64_t* lengths = nullptr;
  const void *factors = nullptr, *keep = nullptr;
  const void* x = nullptr;       // or the gradient
  const void* before = nullptr;  // states of the step before
  void* states = nullptr;
  void* products = nullptr;  // `gates` rows for each sequence: U h of the step before; written by the transpose
  void* carry = nullptr;     // of the transpose
};

struct RecurrentLaunchers {
  void (*cell)(const CellStep&, CUstream_st* stream);
  void (*advance)(const GatedRecurrenceStep&, CUstream_st* stream);
  void (*retreat)(const GatedRecurrenceStep&, CUstream_st* stream);
};

}  // namespace retrograd::cuda
