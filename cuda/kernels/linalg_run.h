// LinalgRun: the matrices of one call of linear algebra, and the kernels of cuda/kernels/linalg_call.h on them, on
// Gpu::current(). The kernels of ops are sequences of its steps (linalg.cc, determinants.cc).
//
// Temporary matrices are dense, row-major and contiguous in a Scratch of numbers(); so are lists of integers().
#pragma once

#include <utility>

#include "cuda/kernels/linalg_call.h"
#include "cuda/scratch.h"
#include "engine/op.h"

namespace retrograd::inline v0::cuda {

class KernelTable;

class LinalgRun {
 public:
  /// Operand 0 is (..., n, n); the dims before are the batch of all sides.
  explicit LinalgRun(const Call& call);

  const Call& call;
  const int64_t n;
  const bool is_double;
  MatrixBatch batch;

  /// Whether there is nothing to compute.
  bool is_empty() const { return batch.count == 0; }
  /// Bytes for `each` numbers, or 32-bit integers, of each matrix.
  int64_t numbers(int64_t each) const;
  int64_t integers(int64_t each) const;

  /// A tensor (..., rows, columns); or (..., n), as one column each.
  BatchMatrix side(const TensorImpl& x) const;
  BatchMatrix column(const TensorImpl& x) const;
  /// Matrices with this many columns in temporary memory, or in a dense result.
  BatchMatrix dense(void* data, int64_t rows, int64_t columns) const;
  BatchMatrix square(void* data) const { return dense(data, n, n); }

  /// Fills in the batch and the type; launches nothing for no elements.
  void move(MoveCall c) const;
  void solve(TriangularCall c) const;
  void facts(FactsCall c) const;
  /// Notes the first failure of those that facts() found.
  void report(const int32_t* failure) const;
  /// LU factors in `lu`, dense, and their permutation, dense, of the matrices in `from`. Not for order 0.
  void factor_lu(const BatchMatrix& from, void* lu, int32_t* permutation) const;
  /// By retrograd's own kernels; `only` as in linalg_call.h.
  void factor_lu_here(const BatchMatrix& from, void* lu, int32_t* permutation, const int32_t* only) const;
  /// The Cholesky factor of the triangle of `from` in `to`, dense, with zeros in the other triangle. True: by the
  /// library, whose info is in `info`.
  bool factor_cholesky(const BatchMatrix& from, void* to, bool upper, int32_t* info) const;

  Gpu& gpu() const { return gpu_; }
  StreamHandle stream() const { return gpu_.compute().handle(); }
  const MatrixLaunchers& launchers() const;
  void launched() const { gpu_.launched(call.op->name); }

 private:
  FactorCall factor_call(void* a) const;

  Gpu& gpu_;
};

/// A list of integers() in temporary memory.
inline int32_t* integers(const Scratch& memory) { return static_cast<int32_t*>(memory.data()); }

/// The transpose.
inline BatchMatrix turned(BatchMatrix m) {
  std::swap(m.row, m.column);
  return m;
}

/// The rows of determinants.cc, which add_linalg_kernels adds.
void add_determinants_kernels(KernelTable& table);
void add_by_host_kernels(KernelTable& table);

}  // namespace retrograd::cuda
