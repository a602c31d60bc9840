// See cuda/kernels/linalg_library.h.
//
// The library is column-major. The LU factors of a transpose differ, since columns are exchanged, so matrices are
// transposed before and after, which costs little compared with a factorisation. The result for a matrix with a zero
// pivot is undefined: if the library finds one, retrograd's own kernels factor that matrix again. A Cholesky factor is
// transposed by its name: a lower triangle in rows is an upper one in columns.
#include "cuda/kernels/linalg_library.h"

#include <optional>

#include "cuda/solver.h"
#include "ops/linalg.h"

namespace retrograd::inline v0::cuda {
namespace {

// The library computes one matrix after the other, each with the whole device; retrograd's own kernels compute all of
// them at the same time, one block for each. Not measured.
constexpr int64_t kLeastOrder = 128, kOrderPerMatrix = 16;

bool is_wanted(SolverUse use, int64_t n, int64_t count) {
  if (n == 0 || count == 0) return false;
  return use == SolverUse::wherever_it_can ||
         (use == SolverUse::where_it_wins && n >= kLeastOrder && count <= n / kOrderPerMatrix);
}

SolverCall solver_call(const LinalgRun& run, Factors wanted) {
  SolverCall c;
  c.wanted = wanted;
  c.type = run.is_double ? SolverType::f64 : SolverType::f32;
  c.n = run.n;
  return c;
}

// The matrices at `a`, one after the other.
bool factor_each(const LinalgRun& run, Solver& library, SolverCall c, void* workspace, int64_t bytes) {
  for (int64_t i = 0; i < run.batch.count; ++i) {
    if (!library.factor(c, workspace, bytes, run.stream())) return false;
    c.a = static_cast<char*>(c.a) + run.n * run.n * (run.is_double ? 8 : 4);
    if (c.pivots) c.pivots += run.n;
    ++c.info;
  }
  return true;
}

// bring() copies the matrices to `a`. Updates the counts. OutOfMemory for the workspace.
template <class Bring>
bool factor_all(const LinalgRun& run, const SolverCall& first, const Bring& bring) {
  Gpu& gpu = run.gpu();
  Solver& library = *gpu.solver();
  SolverOutcome outcome = SolverOutcome::declined;
  if (const std::optional<int64_t> bytes = library.workspace(first)) {
    std::optional<Scratch> workspace;
    if (*bytes > 0) workspace.emplace(*bytes, run.call.op->name);
    const auto is_done = [&] {
      bring();
      return factor_each(run, library, first, workspace ? workspace->data() : nullptr, *bytes);
    };
    outcome = is_done() || (gpu.make_room() && is_done()) ? SolverOutcome::computed : SolverOutcome::failed;
  }
  gpu.count_solver(outcome, run.batch.count);
  return outcome == SolverOutcome::computed;
}

// A recorded call was planned when the library was not to be used.
bool may_ask(const LinalgRun& run) {
  Gpu& gpu = run.gpu();
  if (Recording::of(gpu) || !is_wanted(gpu.solver_use(), run.n, run.batch.count)) return false;
  if (gpu.solver()) return true;
  if (!gpu.is_solver_absent()) gpu.count_solver(SolverOutcome::failed, run.batch.count);
  return false;
}

void copy(const LinalgRun& run, const BatchMatrix& from, const BatchMatrix& to) {
  run.move(
      {.rows = run.n, .columns = run.n, .from_rows = run.n, .from_columns = run.n, .from = from, .to = to});
}

}  // namespace

bool asks_library(Gpu& gpu, int64_t n, int64_t count) {
  return is_wanted(gpu.solver_use(), n, count) && gpu.solver();
}

bool factor_lu_by_library(const LinalgRun& run, const BatchMatrix& from, void* lu, int32_t* permutation) {
  if (!may_ask(run)) return false;
  const std::string_view op = run.call.op->name;
  const Scratch columns(run.numbers(Dim::checked_mul(run.n, run.n)), op),
      pivots(Dim::checked_mul(2, run.integers(run.n)), op), info(run.integers(1), op);
  SolverCall c = solver_call(run, Factors::lu);
  c.a = columns.data();
  c.pivots = static_cast<int64_t*>(pivots.data());
  c.info = static_cast<int32_t*>(info.data());
  const BatchMatrix in_columns = turned(run.square(columns.data()));
  if (!factor_all(run, c, [&] { copy(run, from, in_columns); })) return false;
  copy(run, in_columns, run.square(lu));
  run.launchers().order_rows(c.pivots, permutation, run.n, run.batch.count, run.stream());
  run.launched();
  run.factor_lu_here(from, lu, permutation, c.info);
  return true;
}

bool factor_cholesky_by_library(const LinalgRun& run, const BatchMatrix& from, void* to, bool upper,
                                int32_t* info) {
  if (!may_ask(run)) return false;
  SolverCall c = solver_call(run, upper ? Factors::lower : Factors::upper);
  c.a = to;
  c.info = info;
  return factor_all(run, c, [&] { copy(run, from, run.square(to)); });
}

}  // namespace retrograd::cuda
