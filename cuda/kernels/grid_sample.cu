// grid_sample and its derivatives. A thread takes a point and all its channels, for which it finds the places of the
// point once. The transpose gives a picture to a block: each thread walks over all points and adds what falls on its
// own elements, so that sums are in order of the points, without atomics.
#include "cuda/kernels/grid_sample_call.h"

#include "cuda/kernels/launch.h"
#include "cuda/kernels/launchers.h"
// Included after it, since it needs RG_TARGET.
#include "cuda/kernels/elements.h"

namespace retrograd::inline v0::cuda::RG_TARGET {
namespace {

// The elements of a picture that a point reads, and their weights, with `more` derivatives more by coordinate d.
template <class C>
class Stencil {
 public:
  __device__ Stencil(const GridSampleCall& call, int64_t point, int d = 0, int more = 0) {
    if (call.dims == 2) taps_[0].add(0, 1);
    for (int k = 0; k < call.dims; ++k)
      taps_[2 - k] =
          ops::grid_taps(load<C>(call.grid, call.element, point * call.dims + k), call.size[2 - k], call.mode,
                         call.padding, call.align_corners, call.order[k] + (k == d ? more : 0));
  }
  /// Calls f(place, weight) for each.
  template <class F>
  __device__ void each(const GridSampleCall& call, const F& f) const {
    for (int i = 0; i < taps_[0].count; ++i)
      for (int j = 0; j < taps_[1].count; ++j)
        for (int k = 0; k < taps_[2].count; ++k)
          f((taps_[0].at[i] * call.size[1] + taps_[1].at[j]) * call.size[2] + taps_[2].at[k],
            taps_[0].weight[i] * taps_[1].weight[j] * taps_[2].weight[k]);
  }

 private:
  ops::GridTaps<C> taps_[3];  // depth, height, width
};

__device__ inline int64_t picture_of(const GridSampleCall& call) {
  return call.size[0] * call.size[1] * call.size[2];
}

template <class C>
__global__ void __launch_bounds__(kThreads, kLeastBlocks) sample_kernel(const GridSampleCall call) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads, picture = picture_of(call);
  for (int64_t point = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
       point < call.batch * call.points; point += step) {
    const Stencil<C> stencil(call, point);
    const int64_t n = point / call.points, p = point % call.points;
    for (int64_t c = n * call.channels; c < (n + 1) * call.channels; ++c) {
      C sum = 0;
      stencil.each(call, [&](int64_t place, C weight) {
        sum += weight * load<C>(call.x, call.element, c * picture + place);
      });
      store<C>(call.out, call.element, c * call.points + p, sum);
    }
  }
}

template <class C>
__global__ void __launch_bounds__(kThreads, kLeastBlocks) slope_kernel(const GridSampleCall call) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads, picture = picture_of(call);
  for (int64_t point = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
       point < call.batch * call.points; point += step) {
    const int64_t n = point / call.points, p = point % call.points;
    for (int d = 0; d < call.dims; ++d) {
      C sum = 0;
      Stencil<C>(call, point, d, 1).each(call, [&](int64_t place, C weight) {
        for (int64_t c = n * call.channels; c < (n + 1) * call.channels; ++c)
          sum += weight * load<C>(call.g, call.element, c * call.points + p) *
                 load<C>(call.x, call.element, c * picture + place);
      });
      store<C>(call.out, call.element, point * call.dims + d, sum);
    }
  }
}

template <class C>
__global__ void __launch_bounds__(kThreads, kLeastBlocks) transpose_kernel(const GridSampleCall call) {
  const int64_t picture = picture_of(call);
  for (int64_t c = blockIdx.x; c < call.batch * call.channels; c += gridDim.x) {
    C* const out = static_cast<C*>(call.out) + c * picture;
    for (int64_t place = threadIdx.x; place < picture; place += kThreads) out[place] = 0;
    const int64_t first = c / call.channels * call.points;
    for (int64_t p = 0; p < call.points; ++p) {
      const C g = load<C>(call.g, call.element, c * call.points + p);
      Stencil<C>(call, first + p).each(call, [&](int64_t place, C weight) {
        if (place % kThreads == threadIdx.x) out[place] += weight * g;
      });
    }
  }
}

void launch_in(void (*f32)(GridSampleCall), void (*f64)(GridSampleCall), const Shape3& shape,
               const GridSampleCall& call, StreamHandle stream) {
  launch(call.element == Element::f64 ? f64 : f32, shape, stream, call);
}

void launch_sample(const GridSampleCall& call, StreamHandle stream) {
  launch_in(sample_kernel<float>, sample_kernel<double>, threads_for(call.batch * call.points), call, stream);
}

void launch_slope(const GridSampleCall& call, StreamHandle stream) {
  launch_in(slope_kernel<float>, slope_kernel<double>, threads_for(call.batch * call.points), call, stream);
}

void launch_transpose(const GridSampleCall& call, StreamHandle stream) {
  launch_in(transpose_kernel<float>, transpose_kernel<double>,
            threads_for(call.batch * call.channels * kThreads), call, stream);
}

}  // namespace

void add_grid_sample_launchers(Launchers& all) {
  static constexpr GridSampleLaunchers own{launch_sample, launch_transpose, launch_slope};
  all.grid_sample = &own;
}

}  // namespace retrograd::cuda::RG_TARGET
