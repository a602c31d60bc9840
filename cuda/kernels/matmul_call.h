// Products of matrices in plain data: made by cuda/kernels/matmul.cc from a Call, used by the launchers of
// cuda/kernels/matmul.cu.
//
// out = alpha * a b + beta * start, for each matrix of a batch. Strides are in elements, 0 for a repeated dim or a dim
// of size 1.
#pragma once

#include <cstdint>

#include "cuda/kernels/batch_matrix.h"

struct CUstream_st;

namespace retrograd::inline v0::cuda {

enum class Element : uint8_t;

struct MatmulCall {
  enum { kOut, kA, kB, kStart, kSides };

  int64_t m = 1, n = 1, k = 1;
  Element element{};         // of all sides
  BatchMatrix side[kSides];  // a (m, k), b (k, n), the others (m, n); start may have no data
  int64_t batches = 1;
  int batch_rank = 0;
  int64_t batch_size[8] = {};
  double alpha = 1, beta = 1;
  int64_t integer_alpha = 1, integer_beta = 1;  // the same for integers

  // How a product with m = 1 or n = 1 is split, by sizes and strides only.
  bool is_thin = false;
  bool outputs_first = false;  // neighbouring threads take neighbouring results, not neighbouring terms
  int lanes = 32;              // threads of a result
  int splits = 1;              // parts of a sum, computed by separate blocks
  int64_t part = 0;            // terms of a part
  void* partials = nullptr;    // 8 bytes for each part of each result, if splits > 1
};

using MatmulLauncher = void (*)(const MatmulCall&, CUstream_st* stream);

/// By compute type.
struct MatmulRow {
  MatmulLauncher f32, f64, i64;
};

}  // namespace retrograd::cuda
