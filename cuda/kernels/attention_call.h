// Attention in plain data: made by cuda/kernels/attention.cc from a Call, used by the launchers of
// cuda/kernels/attention.cu.
#pragma once

#include <cstdint>

#include "cuda/kernels/batch_matrix.h"

struct CUstream_st;

namespace retrograd::inline v0::cuda {

/// query (..., queries, depth), key (..., keys, depth), value (..., keys, width), g and out (..., queries, width), lse
/// (..., queries): a column. All have one type, except that lse is float for 16-bit types; results are dense.
struct AttentionCall {
  enum { kQuery, kKey, kValue, kOut, kLse, kG, kSides };

  BatchMatrix side[kSides];
  int64_t batches = 1;
  int batch_rank = 0;
  int64_t batch_size[8] = {};
  int64_t queries = 0, keys = 0, depth = 0, width = 0;
  bool is_causal = false;
  double scale = 1;
  // The forward pass writes side[kOut] and side[kLse]. For the backward pass:
  void *query_gradient = nullptr, *key_gradient = nullptr, *value_gradient = nullptr;
  void* delta = nullptr;  // two numbers for each query

  /// Whether tensor cores compute a call of a 16-bit type: rows of query, key, value, out and g are whole pieces of 16
  /// bytes, with at most 128 elements; scores increase with products, so that the largest product is the largest score.
  bool takes_tensor_cores() const;
};

using AttentionLauncher = void (*)(const AttentionCall&, CUstream_st* stream);

struct AttentionPasses {
  AttentionLauncher forward, backward;
};
struct AttentionRow {
  AttentionPasses f64, f32, f16, bf16;      // any call: sums of float or double by threads
  AttentionPasses tensor_f16, tensor_bf16;  // if takes_tensor_cores()
};

}  // namespace retrograd::cuda
