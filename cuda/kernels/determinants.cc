// Determinants on a device, made of LU factors, and cofactors (ops/linalg.h). As on the CPU
// (cpu/kernels/determinants.cc), cofactors are det A * inverse(A)' if that is accurate, else they are computed by full
// pivoting, like their derivative: cpu/kernels/cofactor.h describes the method. Only the device knows which of both a
// matrix needs: both are launched, and the second skips the matrices that the first has done.
#include <cmath>
#include <limits>

#include "cuda/kernels/launchers.h"
#include "cuda/kernels/linalg_run.h"
#include "cuda/kernels/table.h"
#include "ops/linalg.h"

namespace retrograd::inline v0::cuda {
namespace {

// Runs facts() for operands 1 and 2, with the outputs that `wanted` asks for; writes the permutation, dense, to `rows`.
// Reports errors of permutations.
void facts_of_factors(const LinalgRun& run, FactsCall wanted, const Scratch& rows) {
  const std::string_view op = run.call.op->name;
  const Scratch inverse(run.integers(run.n), op), failure(run.integers(1), op);
  wanted.factors = run.side(*run.call.operands[1]);
  wanted.permutation = run.column(*run.call.operands[2]);
  wanted.rows = integers(rows);
  wanted.inverse = integers(inverse);
  wanted.failure = integers(failure);
  run.facts(wanted);
  run.report(integers(failure));
}

void lu_det_kernel(const Call& call, TensorImpl* const* outputs) {
  const LinalgRun run(call);
  if (run.is_empty()) return;
  const Scratch rows(run.integers(run.n), call.op->name);
  facts_of_factors(run, {.det = outputs[0]->data()}, rows);
}

void lu_slogdet_kernel(const Call& call, TensorImpl* const* outputs) {
  const LinalgRun run(call);
  if (run.is_empty()) return;
  const Scratch rows(run.integers(run.n), call.op->name);
  facts_of_factors(run, {.sign = outputs[0]->data(), .log = outputs[1]->data()}, rows);
}

// P A Q = L D U by full pivoting, so that A = X D Y with X = P' L and Y = U Q' (cpu/kernels/cofactor.cc); for the
// matrices in `only`.
class Decomposition {
 public:
  Decomposition(const LinalgRun& run, const BatchMatrix& a, const int32_t* only) : run_(run), only_(only) {
    move(a, run.square(factors_.data()), nullptr, nullptr, nullptr);
    FactorCall c;
    c.is_double = run.is_double;
    c.n = run.n;
    c.count = run.batch.count;
    c.a = factors_.data();
    c.permutation = integers(rows_);
    c.columns = integers(columns_);
    c.rows_inverse = integers(rows_inverse_);
    c.columns_inverse = integers(columns_inverse_);
    c.diagonal = diagonal_.data();
    c.before = before_.data();
    c.behind = behind_.data();
    c.sign = sign_.data();
    c.only = only;
    run.gpu().launchers().linalg->factor.full_pivots(c, run.stream());
    run.launched();
  }
  Decomposition(const Decomposition&) = delete;

  /// f = inverse(X) e inverse(Y).
  void bring_inward(const BatchMatrix& e, const BatchMatrix& f) const {
    move(e, f, &rows_, &columns_, nullptr);
    solve(factors(), false, f);
    solve(turned(factors()), false, turned(f));
  }
  /// c: the cofactors of D, or with f their derivative in the direction f. Both dense.
  void differentiate(const void* f, void* c) const {
    run_.launchers().diagonal({.is_double = run_.is_double,
                               .n = run_.n,
                               .count = run_.batch.count,
                               .diagonal = diagonal_.data(),
                               .before = before_.data(),
                               .behind = behind_.data(),
                               .f = f,
                               .c = c,
                               .only = only_},
                              run_.stream());
    run_.launched();
  }
  /// out = cof(X) c cof(Y); c is overwritten.
  void bring_outward(const BatchMatrix& c, const BatchMatrix& out) const {
    solve(turned(factors()), true, c);
    solve(factors(), true, turned(c));
    move(c, out, &rows_inverse_, &columns_inverse_, sign_.data());
  }

 private:
  BatchMatrix factors() const { return run_.square(factors_.data()); }
  void solve(const BatchMatrix& t, bool upper, const BatchMatrix& x) const {
    run_.solve({.upper = upper, .unit = true, .columns = run_.n, .t = t, .x = x, .only = only_});
  }
  void move(const BatchMatrix& from, const BatchMatrix& to, const Scratch* rows, const Scratch* columns,
            const void* scale) const {
    const int64_t n = run_.n;
    run_.move({.rows = n,
               .columns = n,
               .from_rows = n,
               .from_columns = n,
               .from = from,
               .to = to,
               .rows_of = rows ? integers(*rows) : nullptr,
               .columns_of = columns ? integers(*columns) : nullptr,
               .scale = scale,
               .only = only_});
  }
  int64_t list() const { return run_.integers(run_.n); }

  const LinalgRun& run_;
  const int32_t* const only_;
  const std::string_view op_ = run_.call.op->name;
  const Scratch factors_{run_.numbers(Dim::checked_mul(run_.n, run_.n)), op_}, rows_{list(), op_},
      columns_{list(), op_}, rows_inverse_{list(), op_}, columns_inverse_{list(), op_},
      diagonal_{run_.numbers(run_.n), op_}, before_{run_.numbers(run_.n), op_},
      behind_{run_.numbers(run_.n), op_}, sign_{run_.numbers(1), op_};
};

void cofactor_kernel(const Call& call, TensorImpl* const* outputs) {
  const LinalgRun run(call);
  if (run.is_empty()) return;
  const std::string_view op = call.op->name;
  const int64_t n = run.n;
  const Scratch rows(run.integers(n), op), det(run.numbers(1), op), is_ill(run.integers(1), op),
      memory(run.numbers(Dim::checked_mul(n, n)), op);
  const double epsilon = run.is_double ? std::numeric_limits<double>::epsilon()
                                       : static_cast<double>(std::numeric_limits<float>::epsilon());
  facts_of_factors(
      run,
      {.det = det.data(),
       .is_ill = integers(is_ill),
       .least_ratio = std::sqrt(std::sqrt(epsilon))},  // at least three quarters of the digits remain
      rows);
  if (n == 0) return;
  const BatchMatrix lu = run.side(*call.operands[1]), c = run.square(memory.data()),
                    out = run.square(outputs[0]->data());
  run.move({.rows = n, .columns = n, .from_rows = n, .from_columns = n, .to = c});
  run.solve({.columns = n, .t = turned(lu), .x = c});
  run.solve({.upper = true, .unit = true, .columns = n, .t = turned(lu), .x = c});
  run.move({.rows = n,
            .columns = n,
            .from_rows = n,
            .from_columns = n,
            .from = c,
            .to = out,
            .rows_of = integers(rows),
            .scale = det.data()});
  const Decomposition x(run, run.side(*call.operands[0]), integers(is_ill));
  x.differentiate(nullptr, memory.data());
  x.bring_outward(c, out);
}

void cofactor_derivative_kernel(const Call& call, TensorImpl* const* outputs) {
  const LinalgRun run(call);
  if (run.is_empty() || run.n == 0) return;
  const Scratch memory(run.numbers(Dim::checked_mul(run.n, run.n)), call.op->name);
  void* const f = outputs[0]->data();
  const Decomposition x(run, run.side(*call.operands[0]), nullptr);
  x.bring_inward(run.side(*call.operands[1]), run.square(f));
  x.differentiate(f, memory.data());
  x.bring_outward(run.square(memory.data()), run.square(f));
}

}  // namespace

void add_determinants_kernels(KernelTable& table) {
  table.set(&ops::info<ops::LuDet>, lu_det_kernel);
  table.set(&ops::info<ops::LuSlogdet>, lu_slogdet_kernel);
  table.set(&ops::info<ops::Cofactor>, cofactor_kernel);
  table.set(&ops::info<ops::CofactorDerivative>, cofactor_derivative_kernel);
}

}  // namespace retrograd::cuda
