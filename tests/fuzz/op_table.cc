// The families' rows, and functions that bring operands into the domain of an op.
#include "tests/fuzz/op_table.h"

#include "ops/activations.h"
#include "ops/arithmetic.h"
#include "ops/unary.h"

namespace fuzz {

std::span<const OpRow> op_table() {
  static const OpRows* rows = [] {
    auto* all = new OpRows;
    add_elementwise_rows(*all);
    add_shape_rows(*all);
    add_index_rows(*all);
    add_reduction_rows(*all);
    add_norm_rows(*all);
    add_matrix_rows(*all);
    add_window_rows(*all);
    add_statistics_rows(*all);
    return all;
  }();
  return *rows;
}

const OpRow* find_row(std::string_view name) {
  for (const OpRow& row : op_table())
    if (row.name == name) return &row;
  return nullptr;
}

Tensor positive(const Tensor& x) { return rg::abs(x) + 0.5; }
Tensor beyond_one(const Tensor& x) { return rg::abs(x) + 1.25; }
Tensor unit(const Tensor& x) { return rg::tanh(x) * 0.9; }
Tensor fraction(const Tensor& x) { return rg::sigmoid(x); }

}  // namespace fuzz
