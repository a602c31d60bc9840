// Blas: products of matrices by the vendor's library, as one function that either computes a product or declines it.
//
// Everything here counts in rows: a matrix (rows, columns) whose rows are contiguous, or, where `turned`, whose columns are. The library is
// cuBLASLt (cuda/blas_cublaslt.cc), which is opened when a program multiplies for the first time and is not linked: it is larger than all
// else together, and where it is absent the library's own kernels take its place. What it declines goes to them as well, so a false is no
// error. Tests put a stand-in here.
//
// Results depend on nothing but sizes and alignments: sums that are cut are added in the type they are computed in, in a fixed order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

struct CUstream_st;

namespace retrograd::cuda {

/// 16-bit factors are multiplied exactly and summed in float32; the result is rounded once.
enum class BlasType : uint8_t { f32, f64, f16, bf16 };

struct BlasMatrix {
  const void* data = nullptr;
  bool turned = false;
  int64_t step = 0;   // elements between rows, or between columns where turned
  int64_t batch = 0;  // elements between the matrices of a batch
};

/// out = alpha * a b + beta * start + bias; a (m, k), b (k, n), start and out (m, n) in rows.
struct BlasProduct {
  static constexpr int64_t kBiasAlignment = 16;  // bytes, at least: the same for all, so that one bias has no other bits than the next

  BlasType type = BlasType::f32;
  int64_t m = 0, n = 0, k = 0, batches = 1;
  BlasMatrix a, b;
  BlasMatrix start;            // data null: none; may be out
  const void* bias = nullptr;  // n elements, added to every row; null: none
  void* out = nullptr;
  int64_t out_step = 0, out_batch = 0;
  double alpha = 1, beta = 0;
  bool tf32 = false;  // float32 factors may lose 13 bits
};

class Blas {
 public:
  /// Bytes of the workspace.
  static constexpr int64_t kWorkspace = int64_t{32} << 20;

  virtual ~Blas() = default;
  /// Puts the product on the stream, or returns false. No size is 0. Calls of several threads are put on the stream one after the other.
  virtual bool multiply(const BlasProduct& product, void* workspace, CUstream_st* stream) = 0;
};

/// cuBLASLt for the device that is this thread's; null where it is not found. Only in a build with the toolkit.
std::unique_ptr<Blas> open_cublaslt();

}  // namespace retrograd::cuda
