// The table of //benchmarks:ops: one row per op, in a file for each family of ops.
//
// A row describes its operands in a small language, shared with benchmarks/peers/op_rows.py, so that both sides compute
// on the same shapes and kinds of values:
//   operands  separated by spaces, each [~]KIND:DIMS; "~" for one that wants no gradient
//   DIMS      sizes separated by commas: a number, or n, r, c: n elements as r rows of c columns. A row whose
//             operands name one of these is measured for each of kSizes, any other at its own sizes
//   KIND      x normal, u uniform in (0.05, 0.95), g one plus uniform, s symmetric positive definite,
//             h normal bfloat16, d normal float64, l int64 in [-100, 100), b bool, iB int64 in [0, B) for a
//             bound B as in DIMS
// All are float32 unless named otherwise. `flops` is the number of multiplications and additions of the forward pass,
// if these are the limit; 0 means an op that is limited by memory. If an op has no operand of size n, like rand(n), its
// row takes n from Operands::n and says so by "n" alone.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "benchmarks/common/place.h"

namespace bench {

/// The operands of a row, and the size and device of the measurement.
struct Operands : rg::Tensors {
  int64_t n = 0;
  rg::Device device = rg::kCPU;
  rg::TensorOptions options(rg::ScalarType dtype = rg::kFloat32) const { return {dtype, device}; }
};
using In = const Operands&;

struct Row {
  std::string_view name, inputs;
  std::function<rg::Tensor(In)> forward;
  double flops = 0;
};
using Table = std::vector<Row>;

inline constexpr int64_t kSizes[] = {1'000, 100'000, 10'000'000};

Table elementwise_rows();
Table reduction_rows();  // everything, by rows, by columns; scans, sorts
Table special_rows();    // special functions, the float format, integers, shrinkage
Table row_rows();        // softmax, normalisations, losses
Table index_rows();
Table scatter_rows();        // reductions at positions, copies with a part replaced
Table statistics_rows();     // order statistics, quantiles, counts, searches
Table layout_rows();         // copies, joins, random numbers, constants
Table window_rows();         // convolutions, pools, interpolation
Table nn_rows();             // grids, patches, bags, losses of margins and alignments
Table matrix_rows();         // products, decompositions, attention
Table decomposition_rows();   // decompositions, functions of matrices, products beyond matmul
Table factorisation_rows();  // of matrices of many orders; measured by --factorisations alone

/// For `flops` of what takes O(n^3).
constexpr double cube(double n) { return n * n * n; }

/// Whether the sizes of a row's operands depend on n.
bool is_scaled(const Row& row);
/// New operands of a row on a device; those that may have a gradient want one if `gradients`. `dtype`: instead of
/// float32.
Operands make_operands(const Row& row, int64_t n, bool gradients, rg::Device device = rg::kCPU,
                       rg::ScalarType dtype = rg::kFloat32);

}  // namespace bench
