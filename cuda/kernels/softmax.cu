// Softmax, log-softmax and their backward ops, of rows. The formulas are those of
// cpu/kernels/levels/softmax_norm_rows.cc: in two passes over its row a team computes the largest element and a sum;
// the last pass writes.
#include "cuda/kernels/softmax_call.h"

#include "cuda/kernels/launchers.h"
#include "cuda/kernels/rows.cuh"

namespace retrograd::inline v0::cuda::RG_TARGET {
namespace {

template <class Rows>
__device__ double row_dot(const Team& team, const typename Rows::Row& x, const typename Rows::Row& y) {
  using C = typename Rows::C;
  double sum = 0;
  for (int64_t i = team.begin; i < team.end; i += team.step) {
    C v[Rows::N], w[Rows::N], pack = 0;
    const int count = x.read(i, v);
    y.read(i, w);
    for (int k = 0; k < Rows::N; ++k)
      if (k < count) pack += v[k] * w[k];
    sum += static_cast<double>(pack);
  }
  return sum_over_team(team, sum);
}

// The sum needed for a kind.
template <SoftmaxKind kind, class Rows, class C>
__device__ double sum_of(const Team& team, const typename Rows::Row& x, const typename Rows::Row& y, C max) {
  if constexpr (kind == SoftmaxKind::softmax_backward)
    return row_dot<Rows>(team, x, y);
  else if constexpr (kind == SoftmaxKind::log_softmax_backward)
    return row_sum<Rows>(team, x, [](C v) { return v; });
  else if constexpr (kind == SoftmaxKind::log_softmax)
    return log_sum<Rows>(team, x, max);
  else
    return row_sum<Rows>(team, x, [max](C v) { return exponential(v - max); });
}

// Like less_share() of cpu/kernels/levels/row_lanes.h.
template <class C>
__device__ C less_share(C g, C y, C sum) {
  return y > C(-0.6931471805599453) ? (g - sum) - exponential_less_one(y) * sum : g - exponential(y) * sum;
}

template <SoftmaxKind kind, class Rows>
__global__ void __launch_bounds__(kThreads, kLeastBlocks)
    softmax_kernel(const Rows xs, const Rows ys, const Rows outs, const RowCut cut) {
  using C = typename Rows::C;
  constexpr int N = Rows::N;
  constexpr bool is_backward = kind >= SoftmaxKind::softmax_backward;
  const Team team = Team::of<N>(cut);
  const int64_t row = team.safe_row(cut);
  const auto x = xs.row(row), y = is_backward ? ys.row(row) : x, out = outs.row(row);

  C max = 0;
  if constexpr (!is_backward) max = row_max<Rows>(team, x);
  const double sum = sum_of<kind, Rows>(team, x, y, max);
  const auto s = static_cast<C>(kind == SoftmaxKind::softmax ? 1 / sum : sum);
  for (int64_t i = team.begin; i < team.end; i += team.step) {
    C v[N], w[N] = {};
    x.read(i, v);
    if constexpr (is_backward) y.read(i, w);
    for (int k = 0; k < N; ++k) {
      if constexpr (kind == SoftmaxKind::softmax) v[k] = exponential(v[k] - max) * s;
      if constexpr (kind == SoftmaxKind::log_softmax) v[k] = (v[k] - max) - s;
      if constexpr (kind == SoftmaxKind::softmax_backward) v[k] = w[k] * (v[k] - s);
      if constexpr (kind == SoftmaxKind::log_softmax_backward) v[k] = less_share(v[k], w[k], s);
    }
    out.write(i, v);
  }
}

template <SoftmaxKind kind>
void launch_softmax(const SoftmaxCall& call, StreamHandle stream) {
  const bool is_dense = call.x.is_dense && call.out.is_dense && (!call.y.data || call.y.is_dense);
  with_rows(call.out.element, is_dense, [&]<class Rows>() {
    launch(softmax_kernel<kind, Rows>, row_shape(call.cut), stream, Rows(call.x), Rows(call.y),
           Rows(call.out), call.cut);
  });
}

}  // namespace

void add_softmax_launchers(Launchers& all) {
  using enum SoftmaxKind;
  static constexpr SoftmaxLaunchers own{{launch_softmax<softmax>, launch_softmax<log_softmax>,
                                         launch_softmax<softmax_backward>,
                                         launch_softmax<log_softmax_backward>}};
  all.softmax = &own;
}

}  // namespace retrograd::cuda::RG_TARGET
