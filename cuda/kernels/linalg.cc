// Factorisations of matrices and systems on a device (ops/linalg.h): an op is a sequence of launches, which are steps
// of LinalgRun.
//
// Factors of large matrices come from the vendor's library (linalg_library.h), everything else from retrograd's own
// kernels. A matrix that cannot be factored is recorded and becomes the CPU's error when the host next waits for the
// device (cuda/faults.h).
#include "ops/linalg.h"

#include "cuda/kernels/linalg_library.h"
#include "cuda/kernels/linalg_run.h"
#include "cuda/kernels/table.h"

namespace retrograd::inline v0::cuda {
namespace {

void lu_factor_kernel(const Call& call, TensorImpl* const* outputs) {
  const LinalgRun run(call);
  if (run.is_empty() || run.n == 0) return;
  run.factor_lu(run.side(*call.operands[0]), outputs[0]->data(), static_cast<int32_t*>(outputs[1]->data()));
}

void lu_solve_kernel(const Call& call, TensorImpl* const* outputs) {
  const auto& attrs = call.attrs_as<ops::LuSolve::Attrs>();
  const LinalgRun run(call);
  if (run.is_empty()) return;
  const std::string_view op = call.op->name;
  const int64_t n = run.n, columns = call.operands[3]->shape().back().raw();
  const Scratch rows(run.integers(n), op), inverse(run.integers(n), op), failure(run.integers(1), op);
  const BatchMatrix lu = run.side(*call.operands[1]), b = run.side(*call.operands[3]),
                    x = run.dense(outputs[0]->data(), n, columns);
  run.facts({.refuses_zeros = attrs.check,
             .factors = lu,
             .permutation = run.column(*call.operands[2]),
             .rows = integers(rows),
             .inverse = integers(inverse),
             .failure = integers(failure)});
  run.report(integers(failure));
  MoveCall move{.rows = n, .columns = columns, .from_rows = n, .from_columns = columns, .from = b, .to = x};
  if (!attrs.transposed) {
    move.rows_of = integers(inverse);  // row i goes to row p[i]
    run.move(move);
    run.solve({.unit = true, .columns = columns, .t = lu, .x = x});
    run.solve({.upper = true, .columns = columns, .t = lu, .x = x});
    return;
  }
  const Scratch memory(run.numbers(Dim::checked_mul(n, columns)), op);
  const BatchMatrix y = run.dense(memory.data(), n, columns);
  move.to = y;
  run.move(move);
  run.solve({.columns = columns, .t = turned(lu), .x = y});
  run.solve({.upper = true, .unit = true, .columns = columns, .t = turned(lu), .x = y});
  move.from = y;
  move.to = x;
  move.rows_of = integers(rows);
  run.move(move);
}

void inverse_kernel(const Call& call, TensorImpl* const* outputs) {
  const LinalgRun run(call);
  if (run.is_empty() || run.n == 0) return;
  const std::string_view op = call.op->name;
  const int64_t n = run.n;
  const Scratch memory(run.numbers(Dim::checked_mul(n, n)), op), permutation(run.integers(n), op),
      rows(run.integers(n), op), inverse(run.integers(n), op), failure(run.integers(1), op);
  const BatchMatrix lu = run.square(memory.data()), y = run.square(outputs[0]->data());
  run.factor_lu(run.side(*call.operands[0]), memory.data(), integers(permutation));
  run.facts({.refuses_zeros = true,
             .factors = lu,
             .permutation = run.dense(permutation.data(), n, 1),
             .rows = integers(rows),
             .inverse = integers(inverse),
             .failure = integers(failure)});
  run.report(integers(failure));
  run.move(
      {.rows = n, .columns = n, .from_rows = n, .from_columns = n, .to = y, .rows_of = integers(inverse)});
  run.solve({.unit = true, .columns = n, .t = lu, .x = y});
  run.solve({.upper = true, .columns = n, .t = lu, .x = y});
}

void cholesky_kernel(const Call& call, TensorImpl* const* outputs) {
  const bool upper = call.attrs_as<ops::Cholesky::Attrs>().upper;
  const LinalgRun run(call);
  if (run.is_empty() || run.n == 0) return;
  void* const factor = outputs[0]->data();
  const Scratch info(run.integers(1), call.op->name), failure(run.integers(1), call.op->name);
  const bool has_info = run.factor_cholesky(run.side(*call.operands[0]), factor, upper, integers(info));
  run.facts({.refuses_negatives = true,
             .factors = run.square(factor),
             .info = has_info ? integers(info) : nullptr,
             .failure = integers(failure)});
  run.report(integers(failure));
}

void solve_triangular_kernel(const Call& call, TensorImpl* const* outputs) {
  const auto& attrs = call.attrs_as<ops::SolveTriangular::Attrs>();
  const LinalgRun run(call);
  const int64_t n = run.n, columns = call.operands[1]->shape().back().raw();
  const BatchMatrix x = run.dense(outputs[0]->data(), n, columns);
  run.move({.rows = n,
            .columns = columns,
            .from_rows = n,
            .from_columns = columns,
            .from = run.side(*call.operands[1]),
            .to = x});
  run.solve({.upper = attrs.upper,
             .unit = attrs.unitriangular,
             .columns = columns,
             .t = run.side(*call.operands[0]),
             .x = x});
}

}  // namespace

void add_linalg_kernels(KernelTable& table) {
  table.set(&ops::info<ops::LuFactor>, lu_factor_kernel);
  table.set(&ops::info<ops::LuSolve>, lu_solve_kernel);
  table.set(&ops::info<ops::Inverse>, inverse_kernel);
  table.set(&ops::info<ops::Cholesky>, cholesky_kernel);
  table.set(&ops::info<ops::SolveTriangular>, solve_triangular_kernel);
  add_determinants_kernels(table);
  add_by_host_kernels(table);
}

bool is_by_solver(Gpu& gpu, const OpInfo& op, std::span<const TensorType> operands) {
  if (&op != &ops::info<ops::LuFactor> && &op != &ops::info<ops::Inverse> && &op != &ops::info<ops::Cholesky>)
    return false;
  const Shape& shape = operands[0].shape;
  int64_t count = 1;
  for (int d = 0; d < shape.rank() - 2; ++d) count *= shape[d].raw();
  return asks_library(gpu, shape.back().raw(), count);
}

}  // namespace retrograd::cuda
