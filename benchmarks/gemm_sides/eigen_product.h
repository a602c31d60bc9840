// Eigen's product of float32 matrices, compiled for the machine at hand: nothing of the library or of std
// is seen by the file that is compiled so, lest an inline function of both kinds exist.
#pragma once

#include <cstdint>

namespace bench {

struct EigenOperand {
  const float* data;
  int64_t rows, columns;  // as it lies in memory, row by row
  bool transposed;
};

/// Rows [row, row + rows) and columns [column, column + columns) of the product into c, which has c_rows by
/// c_columns.
struct EigenPiece {
  int64_t row, rows, column, columns;
};
void eigen_product(const EigenOperand& a, const EigenOperand& b, float* c, int64_t c_rows, int64_t c_columns,
                   const EigenPiece& piece);

}  // namespace bench
