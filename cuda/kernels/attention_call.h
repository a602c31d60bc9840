// Attention in plain data: what cuda/kernels/attention.cc makes of a Call, and what the launchers of cuda/kernels/attention.cu take.
#pragma once

#include <cstdint>

#include "cuda/kernels/batch_matrix.h"

struct CUstream_st;

namespace retrograd::cuda {

/// query (..., queries, depth), key (..., keys, depth), value (..., keys, width), g and out (..., queries, width), lse (..., queries): a
/// column. All of one type; results are dense.
struct AttentionCall {
  enum { kQuery, kKey, kValue, kOut, kLse, kG, kSides };

  BatchMatrix side[kSides];
  int64_t batches = 1;
  int batch_rank = 0;
  int64_t batch_size[8] = {};
  int64_t queries = 0, keys = 0, depth = 0, width = 0;
  bool is_causal = false;
  double scale = 1;
  // Of the forward pass: side[kOut] and side[kLse] are written. Of the backward pass:
  void *query_gradient = nullptr, *key_gradient = nullptr, *value_gradient = nullptr;
  void* delta = nullptr;  // for a number of each query
};

using AttentionLauncher = void (*)(const AttentionCall&, CUstream_st* stream);

struct AttentionRow {
  AttentionLauncher forward_f32, forward_f64, backward_f32, backward_f64;
};

}  // namespace retrograd::cuda
