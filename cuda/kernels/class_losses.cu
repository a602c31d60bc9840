// Losses over classes. Formulas: ops/losses.h; a team computes a row of logits, a single thread computes what has one
// number per row.
#include "cuda/kernels/class_losses_call.h"

#include "cuda/kernels/launchers.h"
#include "cuda/kernels/rows.cuh"
// Included after it, since it needs RG_TARGET.
#include "cuda/kernels/note.h"

namespace retrograd::inline v0::cuda::RG_TARGET {
namespace {

constexpr int64_t kNone = -1;

// The class of a row, or kNone; a bad one is recorded if there is a place for that.
__device__ inline int64_t class_of(const StridedRows<int64_t>& targets, int64_t row, int64_t ignored,
                                   int64_t n, const FaultNote& note = {}) {
  const int64_t t = targets.row(row).at(0);
  if (t == ignored) return kNone;
  if (!note.fault) return t < 0 || t >= n ? kNone : t;
  return is_in_range(t, n, note) ? t : kNone;
}

template <class C>
__global__ void __launch_bounds__(kThreads, kLeastBlocks)
    nll_kernel(const StridedRows<C> xs, const StridedRows<int64_t> targets, const RowCut cut,
               const int64_t ignored, const FaultNote note, void* loss, const Element element) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (row >= cut.rows) return;
  const int64_t t = class_of(targets, row, ignored, cut.length, note);
  store<C>(loss, element, row, t == kNone ? C(0) : -xs.row(row).at(t));
}

template <class Rows>
__global__ void __launch_bounds__(kThreads, kLeastBlocks)
    nll_backward_kernel(const StridedRows<typename Rows::C> gs, const StridedRows<int64_t> targets,
                        const Rows dxs, const RowCut cut, const int64_t ignored) {
  using C = typename Rows::C;
  const Team team = Team::of<Rows::N>(cut);
  const int64_t row = team.safe_row(cut), t = class_of(targets, row, ignored, cut.length);
  const C g = gs.row(row).at(0);
  const auto dx = dxs.row(row);
  for (int64_t i = team.begin; i < team.end; i += team.step) {
    C v[Rows::N];
    for (int k = 0; k < Rows::N; ++k) v[k] = i + k == t ? -g : C(0);
    dx.write(i, v);
  }
}

template <class Rows>
__global__ void __launch_bounds__(kThreads, kLeastBlocks)
    cross_entropy_kernel(const Rows xs, const StridedRows<int64_t> targets, const RowCut cut,
                         const int64_t ignored, const FaultNote note, void* loss, const Element element,
                         void* stats) {
  using C = typename Rows::C;
  const Team team = Team::of<Rows::N>(cut);
  const int64_t row = team.safe_row(cut);
  const auto x = xs.row(row);
  const C max = row_max<Rows>(team, x);
  const double sum = log_sum<Rows>(team, x, max);
  if (team.lane > 0 || team.row >= cut.rows) return;
  const int64_t t = class_of(targets, row, ignored, cut.length, note);
  static_cast<C*>(stats)[row] = max;
  static_cast<C*>(stats)[cut.rows + row] = static_cast<C>(sum);
  store<double>(loss, element, row,
                t == kNone ? 0.0 : (static_cast<double>(max) - static_cast<double>(x.at(t))) + sum);
}

template <class Rows>
__global__ void __launch_bounds__(kThreads, kLeastBlocks)
    cross_backward_kernel(const StridedRows<typename Rows::C> gs, const Rows xs,
                          const StridedRows<int64_t> targets, const StridedRows<typename Rows::C> stats,
                          const Rows dxs, const RowCut cut, const int64_t ignored) {
  using C = typename Rows::C;
  const Team team = Team::of<Rows::N>(cut);
  const int64_t row = team.safe_row(cut), t = class_of(targets, row, ignored, cut.length);
  const C g = gs.row(row).at(0), max = stats.row(row).at(0), sum = stats.row(cut.rows + row).at(0);
  const auto x = xs.row(row), dx = dxs.row(row);
  for (int64_t i = team.begin; i < team.end; i += team.step) {
    C v[Rows::N];
    x.read(i, v);
    for (int k = 0; k < Rows::N; ++k) {
      const C log_share = (v[k] - max) - sum;
      v[k] = t == kNone   ? C(0)
             : i + k == t ? exponential_less_one(log_share) * g
                          : exponential(log_share) * g;
    }
    dx.write(i, v);
  }
}

template <class C>
void launch_nll_in(const ClassLossCall& call, StreamHandle stream) {
  launch(nll_kernel<C>, threads_for(call.cut.rows), stream, StridedRows<C>(call.x),
         StridedRows<int64_t>(call.target), call.cut, call.ignored, call.note, call.loss, call.x.element);
}

void launch_nll(const ClassLossCall& call, StreamHandle stream) {
  if (call.x.element == Element::f64) return launch_nll_in<double>(call, stream);
  launch_nll_in<float>(call, stream);
}

void launch_nll_backward(const ClassLossCall& call, StreamHandle stream) {
  with_rows(call.dx.element, call.dx.is_dense, [&]<class Rows>() {
    launch(nll_backward_kernel<Rows>, row_shape(call.cut), stream, StridedRows<typename Rows::C>(call.g),
           StridedRows<int64_t>(call.target), Rows(call.dx), call.cut, call.ignored);
  });
}

void launch_cross_entropy(const ClassLossCall& call, StreamHandle stream) {
  with_rows(call.x.element, call.x.is_dense, [&]<class Rows>() {
    launch(cross_entropy_kernel<Rows>, row_shape(call.cut), stream, Rows(call.x),
           StridedRows<int64_t>(call.target), call.cut, call.ignored, call.note, call.loss, call.x.element,
           call.stats_out);
  });
}

void launch_cross_backward(const ClassLossCall& call, StreamHandle stream) {
  with_rows(call.x.element, call.x.is_dense && call.dx.is_dense, [&]<class Rows>() {
    using Numbers = StridedRows<typename Rows::C>;
    launch(cross_backward_kernel<Rows>, row_shape(call.cut), stream, Numbers(call.g), Rows(call.x),
           StridedRows<int64_t>(call.target), Numbers(call.stats), Rows(call.dx), call.cut, call.ignored);
  });
}

}  // namespace

void add_class_losses_launchers(Launchers& all) {
  static constexpr ClassLossLaunchers own{launch_nll, launch_nll_backward, launch_cross_entropy,
                                          launch_cross_backward};
  all.class_losses = &own;
}

}  // namespace retrograd::cuda::RG_TARGET
