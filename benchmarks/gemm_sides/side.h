// The sides of //benchmarks:gemm: implementations that compute the same product of matrices.
//
// All read the same operands, row-major; one that is marked as transposed is stored as its transpose. Our side is the
// public matmul, which allocates its result; the others write into existing memory. On the CPU: Eigen computes a piece
// of C in each thread of our pool. OpenBLAS and oneDNN are loaded when the program starts, with their own threads, and
// omitted if they are not found (libopenblas0-pthread; libdnnl2, and libdnnl-dev at compile time). On a CUDA device:
// cuBLASLt, called directly with the first algorithm of its heuristic, is omitted in a build without the toolkit and if
// the library is not found.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "benchmarks/train/products.h"

namespace bench {

/// A product, its operands in memory, float32 or bfloat16, and memory for the result.
struct Problem {
  Product product;
  rg::Tensor a, b, c;
  rg::ScalarType dtype() const { return c.dtype(); }
  int64_t a_row() const { return a.size(1); }  // elements from a row in memory to the next
  int64_t b_row() const { return b.size(1); }
};

struct Side {
  std::string name;
  std::function<void(int)> set_threads;
  /// Returns a function that computes the product once and returns it; empty if the side has no kernel for the dtype.
  /// The problem outlives it.
  std::function<std::function<rg::Tensor()>(const Problem&)> prepare;
};

Side retrograd_side();
Side eigen_side();
/// Empty if the library is not found.
std::vector<Side> openblas_side();
std::vector<Side> onednn_side();
std::vector<Side> cublaslt_side(const Place& place);

/// All other sides that compute at this place. A program for other machines has none for the CPU: Eigen's kernels are
/// compiled for this one (others_of_devices.cc).
std::vector<Side> other_sides(const Place& place);

}  // namespace bench
