// Blas: products of matrices by the vendor's library, as one function that either computes a product or declines it.
//
// Everything here is row-major: a matrix (rows, columns) has contiguous rows or, if `turned`, contiguous columns. The
// library is cuBLASLt (cuda/blas_cublaslt.cc). It is opened when a program multiplies for the first time and is not
// linked: it is larger than everything else together, and if it is missing, retrograd's own kernels replace it. They
// also compute what it declines, so `false` is no error. Tests use a stand-in here.
//
// Results depend only on sizes and alignments: split sums are added in the type they are computed in, in a fixed order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

struct CUstream_st;

namespace retrograd::inline v0::cuda {

/// 16-bit factors are multiplied exactly and summed in float32; the result is rounded once.
enum class BlasType : uint8_t { f32, f64, f16, bf16 };

struct BlasMatrix {
  const void* data = nullptr;
  bool turned = false;
  int64_t step = 0;   // elements between rows, or between columns if turned
  int64_t batch = 0;  // elements between the matrices of a batch
};

/// out = alpha * a b + beta * start + bias; a (m, k), b (k, n), start and out (m, n) in rows.
struct BlasProduct {
  static constexpr int64_t kBiasAlignment = 16;  // bytes, at least; fixed, so that bits do not depend on the bias

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
  /// Puts the product on the stream, or returns false. No size is 0. Calls from several threads are serialised.
  virtual bool multiply(const BlasProduct& product, void* workspace, CUstream_st* stream) = 0;
};

/// cuBLASLt for this thread's device; null when it is not found. Only in a build with the toolkit.
std::unique_ptr<Blas> open_cublaslt();

}  // namespace retrograd::cuda
