// The sides of //benchmarks:gemm: who computes the same product of matrices.
//
// All read the same operands, row-major, where one that is marked as transposed lies in memory as its
// transpose. Ours is the public matmul, which makes its result; the others write into memory that is there.
// On the CPU: Eigen computes a piece of C in each thread of our pool. OpenBLAS and oneDNN are loaded when the
// program starts, with their own threads, and left out where they are not found (libopenblas0-pthread;
// libdnnl2, and libdnnl-dev when this is compiled). On a CUDA device: cuBLASLt, called directly with the
// algorithm that its heuristic puts first, is left out in a build without the toolkit and where the library
// is not found.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "benchmarks/train/products.h"

namespace bench {

/// A product, its operands as they lie in memory, float32 or bfloat16, and memory for the result.
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
  /// What computes the product once and gives it; empty where the side has no kernel for the dtype. The
  /// problem outlives it.
  std::function<std::function<rg::Tensor()>(const Problem&)> prepare;
};

Side retrograd_side();
Side eigen_side();
/// Empty where the library is not found.
std::vector<Side> openblas_side();
std::vector<Side> onednn_side();
std::vector<Side> cublaslt_side(const Place& place);

/// All but ours that compute there. In a program that is to run on other machines than this one, none does on
/// the CPU: Eigen's kernels are compiled for this one (others_of_devices.cc).
std::vector<Side> other_sides(const Place& place);

}  // namespace bench
