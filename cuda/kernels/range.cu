// Values against a range. A thread reads a few elements; the first also writes the result.
#include "cuda/kernels/range_call.h"

#include "cuda/kernels/launchers.h"
#include "cuda/kernels/rows.cuh"
// Included after it, since it needs RG_TARGET.
#include "cuda/kernels/note.h"

namespace retrograd::inline v0::cuda::RG_TARGET {
namespace {

template <class Rows>
__global__ void __launch_bounds__(kThreads, kLeastBlocks)
    check_kernel(const Rows x, const RangeCall call, const int64_t n) {
  using C = typename Rows::C;
  constexpr int N = Rows::N;
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x,
                step = static_cast<int64_t>(gridDim.x) * kThreads;
  if (thread == 0) *call.result = true;
  for (int64_t i = thread * N; i < n; i += step * N) {
    C v[N];
    x.row(0).read(i, v);
    for (int k = 0; k < N; ++k)
      if (call.refuses_nan || v[k] == v[k]) is_between(v[k], call.low, call.high, call.note);
  }
}

void launch_check(const RangeCall& call, StreamHandle stream) {
  with_rows(call.x.element, call.x.is_dense, [&]<class Rows>() {
    const int64_t n = call.x.along.numel, threads = (n + Rows::N - 1) / Rows::N;
    launch(check_kernel<Rows>, threads_for(threads > 0 ? threads : 1), stream, Rows(call.x), call, n);
  });
}

}  // namespace

void add_range_launchers(Launchers& all) {
  static constexpr RangeLaunchers own{launch_check};
  all.range = &own;
}

}  // namespace retrograd::cuda::RG_TARGET
