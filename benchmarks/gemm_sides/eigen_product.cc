// See eigen_product.h. Compiled with -march=native, hence it includes nothing but Eigen.
#include "benchmarks/gemm_sides/eigen_product.h"

#include <Eigen/Core>

namespace bench {
namespace {

using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

template <class A, class B>
void multiply(const A& a, const B& b, Eigen::Map<RowMajor>& c, const EigenPiece& at) {
  c.block(at.row, at.column, at.rows, at.columns).noalias() =
      a.middleRows(at.row, at.rows) * b.middleCols(at.column, at.columns);
}

}  // namespace

void eigen_product(const EigenOperand& a, const EigenOperand& b, float* c, int64_t c_rows, int64_t c_columns,
                   const EigenPiece& piece) {
  const Eigen::Map<const RowMajor> x(a.data, a.rows, a.columns), y(b.data, b.rows, b.columns);
  Eigen::Map<RowMajor> out(c, c_rows, c_columns);
  if (a.transposed && b.transposed) return multiply(x.transpose(), y.transpose(), out, piece);
  if (a.transposed) return multiply(x.transpose(), y, out, piece);
  if (b.transposed) return multiply(x, y.transpose(), out, piece);
  multiply(x, y, out, piece);
}

}  // namespace bench
