// Attention in plain data: what cuda/kernels/attention.cc makes of a Call, and what the launchers of cuda/kernels/attention.cu take.
#pragma once

#include <cstdint>

#include "cuda/kernels/batch_matrix.h"

struct CUstream_st;

namespace retrograd::cuda {

/// query (..., queries, depth), key (..., keys, depth), value (..., keys, width), g and out (..., queries, width), lse (..., queries): a
/// column. All of one type, but lse of float with a type of 16 bits; results are dense.
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
  void* delta = nullptr;  // two numbers for each query

  /// Whether tensor cores are to compute a call of a type of 16 bits: rows of query, key, value, out and g are whole pieces of 16 bytes, of at
  /// most 128 elements; scores grow with products, so that the largest product is the largest score.
  bool takes_tensor_cores() const;
};

using AttentionLauncher = void (*)(const AttentionCall&, CUstream_st* stream);

struct AttentionPasses {
  AttentionLauncher forward, backward;
};
struct AttentionRow {
  AttentionPasses f64, f32, f16, bf16;      // any call: sums of float or double by threads
  AttentionPasses tensor_f16, tensor_bf16;  // where takes_tensor_cores()
};

}  // namespace retrograd::cuda
