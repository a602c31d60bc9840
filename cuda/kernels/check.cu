// The first bad value of a tensor: each thread looks through its share, a block keeps the smallest place of
// its threads.
#include "cuda/kernels/check_call.h"

#include "cuda/kernels/rows.cuh"

namespace retrograd::cuda::RG_TARGET {
namespace {

RG_HD inline bool is_good(const CheckCall& call, int64_t v) {
  return (v >= call.least && v <= call.most) || v == call.ignored;
}
RG_HD inline bool is_good(const CheckCall& call, double v) { return v >= call.lowest && v <= call.highest; }

template <class C>
__global__ void __launch_bounds__(kThreads, kLeastBlocks)
    check_kernel(const CheckCall call, const StridedGrid<1> grid) {
  constexpr int64_t kNone = INT64_MAX;
  __shared__ int64_t first[kThreads];
  const auto thread = static_cast<int>(threadIdx.x);
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  int64_t mine = kNone;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + thread; i < grid.numel; i += step) {
    if (is_good(call, load<C>(call.x.data, call.x.element, Offsets<1>(grid, i)[0]))) continue;
    mine = i;
    break;
  }
  first[thread] = mine;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (thread < half && first[thread + half] < first[thread]) first[thread] = first[thread + half];
  }
  if (thread > 0) return;
  BadValue bad{-1, 0, 0};
  if (first[0] != kNone) {
    const C v = load<C>(call.x.data, call.x.element, Offsets<1>(grid, first[0])[0]);
    bad = {first[0], static_cast<int64_t>(v), static_cast<double>(v)};
  }
  call.found[blockIdx.x] = bad;
}

}  // namespace

void launch_check(const CheckCall& call, StreamHandle stream) {
  const Shape3 shape{static_cast<unsigned>(call.blocks)};
  const StridedGrid<1> grid = grid_of(call.x.rows);
  if (call.is_integer) return launch(check_kernel<int64_t>, shape, stream, call, grid);
  launch(check_kernel<double>, shape, stream, call, grid);
}

}  // namespace retrograd::cuda::RG_TARGET
