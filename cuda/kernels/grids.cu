// Pooling and interpolation: one thread for each result, which goes through its taps along the three axes.
//
// Gradients of largest elements are added at their positions without atomics: a block has a volume and processes its
// elements in order, kThreads at a time; of those with the same position the first thread adds all. So the order of
// additions depends only on sizes.
#include "cuda/kernels/grid_call.h"

#include "cuda/kernels/launch.h"
#include "cuda/kernels/launchers.h"
#include "cuda/kernels/strided.h"
#include "ops/scalar_math.h"

namespace retrograd::inline v0::cuda::RG_TARGET {
namespace {

template <class C>
struct GridOp {
  GridCall call;
  Grid3 results;
  StridedGrid<1> outer;

  explicit GridOp(const GridCall& c)
      : call(c), results({c.axis[0].out, c.axis[1].out, c.axis[2].out}, c.volumes), outer(c.volumes) {
    for (int d = 0; d < c.outer_rank; ++d) outer.add(c.outer_size[d], {c.outer_stride[d]});
  }
  RG_HD int64_t numel() const {
    return call.volumes * call.axis[0].out * call.axis[1].out * call.axis[2].out;
  }

  RG_HD C divided(C x, const int64_t (&at)[3]) const {
    const GridAxis(&a)[3] = call.axis;
    const C scale =
        static_cast<C>((a[0].divisor ? a[0].divisor[at[0]] : 1) * (a[1].divisor ? a[1].divisor[at[1]] : 1));
    const C divisor = static_cast<C>(a[2].divisor ? a[2].divisor[at[2]] : 1) * scale;
    if constexpr (std::is_same_v<C, int64_t>)
      if (divisor == -1) return static_cast<C>(-static_cast<uint64_t>(x));
    return x / divisor;
  }
};

RG_HD inline double weight(const GridAxis& axis, int64_t result, int64_t tap) {
  return axis.weight ? axis.weight[axis.start[result] + tap] : 1;
}

// Integers wrap around; all their weights are 1.
RG_HD inline int64_t sum(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
RG_HD inline float sum(float a, float b) { return a + b; }
RG_HD inline double sum(double a, double b) { return a + b; }

// The sum of the taps along the width of one row.
template <class C>
RG_HD C row_sum(const GridOp<C>& op, int64_t offset, const int64_t (&from)[3], int64_t w) {
  const GridAxis& width = op.call.axis[2];
  C total = 0;
  for (int64_t k = 0; k < width.count[w]; ++k) {
    const int64_t at[3] = {from[0], from[1], width.first[w] + k * width.step};
    C x = load<C>(op.call.x, op.call.element, offset + at[2] * op.call.stride[2]);
    if (op.call.division == GridDivision::before) x = op.divided(x, at);
    total = sum(total, width.weight ? static_cast<C>(weight(width, w, k)) * x : x);
  }
  return total;
}

template <class C>
__global__ void __launch_bounds__(kThreads, kLeastBlocks) resample_kernel(const GridOp<C> op) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= op.numel()) return;
  const GridAxis &depth = op.call.axis[0], &height = op.call.axis[1];
  int64_t at[3];
  const int64_t base = Offsets<1>(op.outer, op.results.split(i, at))[0];
  C total = 0;
  for (int64_t d = 0; d < depth.count[at[0]]; ++d)
    for (int64_t h = 0; h < height.count[at[1]]; ++h) {
      const int64_t from[3] = {depth.first[at[0]] + d * depth.step, height.first[at[1]] + h * height.step, 0};
      const C row =
          row_sum(op, base + from[0] * op.call.stride[0] + from[1] * op.call.stride[1], from, at[2]);
      const bool is_weighed = depth.weight || height.weight;
      total = sum(
          total, is_weighed ? static_cast<C>(weight(depth, at[0], d) * weight(height, at[1], h)) * row : row);
    }
  if (op.call.division == GridDivision::after) total = op.divided(total, at);
  store<C>(op.call.out, op.call.element, i, total);
}

template <class C>
RG_HD C least() {
  if constexpr (std::is_same_v<C, int64_t>) return INT64_MIN;
  return static_cast<C>(-scalar::kInfinity);
}

// Of equal elements the first counts, of NaN the last.
template <class C>
__global__ void __launch_bounds__(kThreads) max_kernel(const GridOp<C> op) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= op.numel()) return;
  const GridAxis(&axis)[3] = op.call.axis;
  int64_t at[3];
  const int64_t base = Offsets<1>(op.outer, op.results.split(i, at))[0];
  const auto place = [&](int64_t d, int64_t h, int64_t w) { return (d * axis[1].in + h) * axis[2].in + w; };
  C best = least<C>();
  int64_t best_place = place(axis[0].first[at[0]], axis[1].first[at[1]], axis[2].first[at[2]]);
  for (int64_t kd = 0; kd < axis[0].count[at[0]]; ++kd)
    for (int64_t kh = 0; kh < axis[1].count[at[1]]; ++kh)
      for (int64_t kw = 0; kw < axis[2].count[at[2]]; ++kw) {
        const int64_t d = axis[0].first[at[0]] + kd * axis[0].step,
                      h = axis[1].first[at[1]] + kh * axis[1].step;
        const int64_t w = axis[2].first[at[2]] + kw * axis[2].step;
        const C x = load<C>(op.call.x, op.call.element,
                            base + d * op.call.stride[0] + h * op.call.stride[1] + w * op.call.stride[2]);
        if (x > best || x != x) {
          best = x;
          best_place = place(d, h, w);
        }
      }
  store<C>(op.call.out, op.call.element, i, best);
  op.call.places[i] = best_place;
}

template <class C>
__global__ void __launch_bounds__(kThreads) places_kernel(const PlacesCall call, const StridedGrid<2> grid) {
  __shared__ int64_t places[kThreads];
  __shared__ C values[kThreads];
  const int thread = static_cast<int>(threadIdx.x);
  const int64_t volume = blockIdx.x;
  C* const sums = static_cast<C*>(call.sums) + volume * call.volume_size;
  for (int64_t i = thread; i < call.volume_size; i += kThreads) sums[i] = 0;
  for (int64_t begin = 0; begin < call.elements; begin += kThreads) {
    places[thread] = -1;
    if (begin + thread < call.elements) {
      const Offsets<2> at(grid, volume * call.elements + begin + thread);
      values[thread] = load<C>(call.g, call.element, at[0]);
      places[thread] = static_cast<const int64_t*>(call.places)[at[1]];
    }
    __syncthreads();
    const int64_t own = places[thread];
    bool adds = own >= 0 && own < call.volume_size;
    for (int j = 0; adds && j < thread; ++j) adds = places[j] != own;
    if (adds) {
      C total = sums[own];
      for (int j = thread; j < kThreads; ++j)
        if (places[j] == own) total += values[j];
      sums[own] = total;
    }
    __syncthreads();
  }
  if (call.sums == call.out) return;
  __syncthreads();
  for (int64_t i = thread; i < call.volume_size; i += kThreads)
    store<C>(call.out, call.element, volume * call.volume_size + i, sums[i]);
}

template <class C>
void resample(const GridCall& call, StreamHandle stream) {
  const GridOp<C> op(call);
  launch(resample_kernel<C>, threads_for(op.numel()), stream, op);
}
template <class C>
void largest(const GridCall& call, StreamHandle stream) {
  const GridOp<C> op(call);
  launch(max_kernel<C>, threads_for(op.numel()), stream, op);
}
template <class C>
void add_at_places(const PlacesCall& call, StreamHandle stream) {
  const int64_t numel = call.volumes * call.elements;
  StridedGrid<2> grid(numel);
  for (int d = 0; d < call.rank; ++d) grid.add(call.size[d], call.stride[d]);
  launch(places_kernel<C>, Shape3{static_cast<unsigned>(call.volumes)}, stream, call, grid);
}

}  // namespace

void add_grids_launchers(Launchers& all) {
  static constexpr GridRow row{resample<float>,      resample<double>,     resample<int64_t>,
                               largest<float>,       largest<double>,      largest<int64_t>,
                               add_at_places<float>, add_at_places<double>};
  all.grids = &row;
}

}  // namespace retrograd::cuda::RG_TARGET
