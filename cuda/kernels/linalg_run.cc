// See cuda/kernels/linalg_run.h.
#include "cuda/kernels/linalg_run.h"

#include "cuda/kernels/launchers.h"
#include "cuda/kernels/linalg_library.h"

namespace retrograd::inline v0::cuda {

LinalgRun::LinalgRun(const Call& call)
    : call(call),
      n(call.operands[0]->shape().back().raw()),
      is_double(call.operands[0]->dtype() == kFloat64),
      gpu_(Gpu::current()) {
  const Shape& shape = call.operands[0]->shape();
  for (int d = 0; d < shape.rank() - 2; ++d) {
    batch.size[batch.rank++] = shape[d].raw();
    batch.count *= shape[d].raw();
  }
}

int64_t LinalgRun::numbers(int64_t each) const {
  return Dim::checked_mul(Dim::checked_mul(batch.count, each), is_double ? 8 : 4);
}
int64_t LinalgRun::integers(int64_t each) const {
  return Dim::checked_mul(Dim::checked_mul(batch.count, each), 4);
}

BatchMatrix LinalgRun::side(const TensorImpl& x) const {
  BatchMatrix m{x.data(), x.strides()[x.rank() - 2], x.strides()[x.rank() - 1]};
  for (int d = 0; d < batch.rank; ++d) m.batch[d] = x.strides()[d];
  return m;
}

BatchMatrix LinalgRun::column(const TensorImpl& x) const {
  BatchMatrix m{x.data(), x.strides()[x.rank() - 1], 0};
  for (int d = 0; d < batch.rank; ++d) m.batch[d] = x.strides()[d];
  return m;
}

BatchMatrix LinalgRun::dense(void* data, int64_t rows, int64_t columns) const {
  BatchMatrix m{data, columns, 1};
  int64_t step = rows * columns;
  for (int d = batch.rank - 1; d >= 0; step *= batch.size[d--]) m.batch[d] = step;
  return m;
}

const MatrixLaunchers& LinalgRun::launchers() const { return gpu_.launchers().linalg->matrices; }

void LinalgRun::move(MoveCall c) const {
  c.is_double = is_double;
  c.batch = batch;
  if (c.batch.count * c.rows * c.columns == 0) return;
  launchers().move(c, stream());
  launched();
}

void LinalgRun::solve(TriangularCall c) const {
  c.is_double = is_double;
  c.batch = batch;
  c.n = n;
  if (c.batch.count * c.n * c.columns == 0) return;
  gpu_.launchers().linalg->triangular(c, stream());
  launched();
}

void LinalgRun::facts(FactsCall c) const {
  c.is_double = is_double;
  c.batch = batch;
  c.n = n;
  launchers().facts(c, stream());
  launched();
}

void LinalgRun::report(const int32_t* failure) const {
  launchers().report(failure, batch.count, batch.rank > 0, gpu_.faults().note(*call.op), stream());
  launched();
}

FactorCall LinalgRun::factor_call(void* a) const {
  FactorCall c;
  c.is_double = is_double;
  c.n = n;
  c.count = batch.count;
  c.a = a;
  return c;
}

void LinalgRun::factor_lu(const BatchMatrix& from, void* lu, int32_t* permutation) const {
  if (!factor_lu_by_library(*this, from, lu, permutation)) factor_lu_here(from, lu, permutation, nullptr);
}

void LinalgRun::factor_lu_here(const BatchMatrix& from, void* lu, int32_t* permutation,
                               const int32_t* only) const {
  move({.rows = n,
        .columns = n,
        .from_rows = n,
        .from_columns = n,
        .from = from,
        .to = square(lu),
        .only = only});
  FactorCall c = factor_call(lu);
  c.permutation = permutation;
  c.only = only;
  gpu_.launchers().linalg->factor.lu(c, stream());
  launched();
}

bool LinalgRun::factor_cholesky(const BatchMatrix& from, void* to, bool upper, int32_t* info) const {
  FactorCall c = factor_call(to);
  c.upper = upper;
  const bool is_by_library = factor_cholesky_by_library(*this, from, to, upper, info);
  if (!is_by_library) {
    move({.rows = n, .columns = n, .from_rows = n, .from_columns = n, .from = from, .to = square(to)});
    gpu_.launchers().linalg->factor.cholesky(c, stream());
    launched();
  }
  launchers().clear_triangle(c, stream());
  launched();
  return is_by_library;
}

}  // namespace retrograd::cuda
