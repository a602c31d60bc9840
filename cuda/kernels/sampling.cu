// Random positions by weights; the method is that of cpu/kernels/sampling.cc. With replacement a thread looks up the
// number of a sample in the running sums; without, a thread computes the arrival time of a category, and the times are
// sorted elsewhere.
#include "cuda/kernels/sampling_call.h"

#include "cuda/kernels/launch.h"
#include "cuda/kernels/launchers.h"
// Included after it, since it needs RG_TARGET.
#include "cuda/kernels/strided.h"
#include "engine/philox.h"
#include "ops/scalar_math.h"

namespace retrograd::inline v0::cuda::RG_TARGET {
namespace {

__device__ double uniform_of(const SamplingCall& call, int64_t i) {
  const auto pair = uniform_double_block(call.seed, call.offset, static_cast<uint64_t>(i) / 2);
  return i % 2 ? pair[1] : pair[0];
}

__global__ void __launch_bounds__(kThreads, kLeastBlocks)
    find_kernel(const SamplingCall call, const Divider of_row) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= call.rows * call.samples) return;
  const int64_t start = of_row(i) * call.length;
  const double* const sums = call.sums + start;
  const double at = uniform_of(call, i) * sums[call.length - 1];
  int64_t low = 0, high = call.length;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (sums[middle] > at)
      high = middle;
    else
      low = middle + 1;
  }
  if (low == call.length)  // rounding gave the whole sum
    for (--low; call.weights[start + low] == 0; --low) continue;
  call.places[i] = low;
}

// A category of weight zero never arrives.
__global__ void __launch_bounds__(kThreads, kLeastBlocks) arrive_kernel(const SamplingCall call) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= call.rows * call.length) return;
  const double weight = call.weights[i];
  const double u = uniform_of(call, i);
  call.times[i] = weight == 0 ? scalar::kInfinity : -scalar::log1p(scalar::Lane<double>(-u)).v / weight;
}

void launch_find(const SamplingCall& call, StreamHandle stream) {
  const int64_t n = call.rows * call.samples;
  launch(find_kernel, threads_for(n), stream, call, Divider(call.samples, n));
}

void launch_arrive(const SamplingCall& call, StreamHandle stream) {
  launch(arrive_kernel, threads_for(call.rows * call.length), stream, call);
}

}  // namespace

void add_sampling_launchers(Launchers& all) {
  static constexpr SamplingLaunchers own{launch_find, launch_arrive};
  all.sampling = &own;
}

}  // namespace retrograd::cuda::RG_TARGET
