// Eigen's product of float32 matrices, compiled for this machine. The file that is compiled this way includes nothing
// of the library or of std, so that no inline function exists in two versions.
#pragma once

#include <cstdint>

namespace bench {

struct EigenOperand {
  const float* data;
  int64_t rows, columns;  // as in memory, row by row
  bool transposed;
};

/// Computes rows [row, row + rows) and columns [column, column + columns) of the product into c, which has c_rows by
/// c_columns.
struct EigenPiece {
  int64_t row, rows, column, columns;
};
void eigen_product(const EigenOperand& a, const EigenOperand& b, float* c, int64_t c_rows, int64_t c_columns,
                   const EigenPiece& piece);

}  // namespace bench
