// Steps of optimizers and the norm of many tensors: see cuda/kernels/optimizers_call.h. All computations of an
// element's step are done together: each number is read and written once, 16 bytes at a time if the addresses allow it;
// 16-bit elements are computed in float32. The formulas are those of the CPU (ops/optimizers/), and give the same
// bits. Norms are summed in float64: a block's elements as a tree over its threads, and blocks in an order that
// depends only on sizes.
#include "cuda/kernels/optimizers_call.h"

#include "cuda/kernels/launch.h"
#include "cuda/kernels/launchers.h"
// Included after it, since it needs RG_TARGET.
#include "cuda/kernels/elements.h"

namespace retrograd::inline v0::cuda::RG_TARGET {
namespace {

/// The row of a table that a block belongs to: the last one that begins at the block or before.
template <class Row>
RG_HD int row_of_block(const Row* rows, int count, int64_t block) {
  int low = 0, high = count;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (rows[middle].first_block <= block)
      low = middle;
    else
      high = middle;
  }
  return low;
}

// N elements from `at` on, stored as S and computed as V.
template <class S, int N, class V, class Formula>
RG_HD void step_elements(const typename Formula::Factors& factors, ops::Present has, const StepTensors& s,
                         int64_t at) {
  constexpr int inputs = Formula::inputs;
  Pack<S, N> in[inputs] = {}, out[inputs - 1];
  for (int k = 0; k < inputs; ++k)
    if (s.in[k]) in[k] = *reinterpret_cast<const Pack<S, N>*>(static_cast<const S*>(s.in[k]) + at);
  for (int i = 0; i < N; ++i) {
    V x[inputs], y[inputs - 1] = {};
    for (int k = 0; k < inputs; ++k) x[k] = converted<typename V::Scalar>(in[k].v[i]);
    Formula::template step<V>(factors, has, x, y);
    for (int k = 0; k + 1 < inputs; ++k) out[k].v[i] = converted<S>(y[k].v);
  }
  for (int k = 0; k + 1 < inputs; ++k)
    if (s.out[k]) *reinterpret_cast<Pack<S, N>*>(static_cast<S*>(s.out[k]) + at) = out[k];
}

// float32 as an element of 16 bits, and back.
RG_HD uint16_t narrowed(float v, Element element) {
  return element == Element::f16 ? converted<Half>(v).bits : converted<BFloat16>(v).bits;
}
RG_HD float widened(const void* from, int64_t at, Element element) {
  if (element == Element::f16) return converted<float>(static_cast<const Half*>(from)[at]);
  if (element == Element::bf16) return converted<float>(static_cast<const BFloat16*>(from)[at]);
  return static_cast<const float*>(from)[at];
}

// One element in float32, whose gradient or parameter may have 16 bits.
template <class V, class Formula>
RG_HD void step_mixed(const typename Formula::Factors& factors, ops::Present has, const StepTensors& s,
                      int64_t at) {
  constexpr int inputs = Formula::inputs;
  V x[inputs] = {}, y[inputs - 1] = {};
  for (int k = 0; k + 1 < inputs; ++k)
    if (s.in[k]) x[k] = static_cast<const float*>(s.in[k])[at];
  x[inputs - 1] = widened(s.in[inputs - 1], at, s.grad);
  if (s.narrow && narrowed(x[0].v, s.param) != static_cast<const uint16_t*>(s.narrow)[at])
    x[0] = widened(s.narrow, at, s.param);
  Formula::template step<V>(factors, has, x, y);
  for (int k = 0; k + 1 < inputs; ++k)
    if (s.out[k]) static_cast<float*>(s.out[k])[at] = y[k].v;
  if (s.narrow) static_cast<uint16_t*>(s.new_narrow)[at] = narrowed(y[0].v, s.param);
}

// All values of elements [begin, end) stay.
template <class S, class Formula, bool is_mixed>
__device__ void keep_elements(const StepTensors& s, int64_t begin, int64_t end) {
  for (int k = 0; k + 1 < Formula::inputs; ++k)
    for (int64_t i = begin + threadIdx.x; s.out[k] && s.out[k] != s.in[k] && i < end; i += kThreads)
      static_cast<S*>(s.out[k])[i] = static_cast<const S*>(s.in[k])[i];
  if constexpr (is_mixed)
    for (int64_t i = begin + threadIdx.x; s.new_narrow != s.narrow && i < end; i += kThreads)
      static_cast<uint16_t*>(s.new_narrow)[i] = static_cast<const uint16_t*>(s.narrow)[i];
}

// `held`: the source of the formula's factors, or null: then `given`. Mixed steps take an element at a time: they need
// too many registers for more.
template <class S, class V, class Formula, bool is_mixed>
__global__ void __launch_bounds__(kThreads)
    step_kernel(const StepList list, const typename Formula::Factors given,
                const typename Formula::Factors* held) {
  const typename Formula::Factors factors = held ? *held : given;
  constexpr int N = 16 / sizeof(S);
  const int64_t block = static_cast<int64_t>(blockIdx.x);
  const StepTensors s = list.steps[row_of_block(list.steps, list.count, block)];
  ops::Present has{0};
  for (int k = 0; k < Formula::inputs; ++k) has.bits |= static_cast<uint32_t>(s.in[k] != nullptr) << k;
  const int64_t begin = (block - s.first_block) * kStepElements;
  const int64_t end = begin + kStepElements < s.numel ? begin + kStepElements : s.numel;
  if (s.found_inf && *s.found_inf != 0) return keep_elements<S, Formula, is_mixed>(s, begin, end);
  if constexpr (is_mixed) {
    for (int64_t at = begin + threadIdx.x; at < end; at += kThreads)
      step_mixed<V, Formula>(factors, has, s, at);
  } else {
    for (int64_t at = begin + static_cast<int64_t>(threadIdx.x) * N; at < end; at += kThreads * N) {
      if (s.is_aligned && at + N <= end)
        step_elements<S, N, V, Formula>(factors, has, s, at);
      else
        for (int64_t i = at; i < at + N && i < end; ++i) step_elements<S, 1, V, Formula>(factors, has, s, i);
    }
  }
}

template <class S, class T, class Formula, bool is_mixed = false>
void launch_steps_of(const StepList& list, const Given<typename Formula::Factors>& factors,
                     StreamHandle stream) {
  launch(step_kernel<S, scalar::Lane<T>, Formula, is_mixed>, {static_cast<unsigned>(list.blocks)}, stream,
         list, factors.value, factors.held);
}

template <class Formula>
void launch_steps(const StepList& list, Element element, const Given<typename Formula::Factors>& factors,
                  StreamHandle stream) {
  switch (element) {
    case Element::f64: return launch_steps_of<double, double, Formula>(list, factors, stream);
    case Element::f16: return launch_steps_of<Half, float, Formula>(list, factors, stream);
    case Element::bf16: return launch_steps_of<BFloat16, float, Formula>(list, factors, stream);
    default: break;
  }
  if (list.is_mixed) return launch_steps_of<float, float, Formula, true>(list, factors, stream);
  launch_steps_of<float, float, Formula>(list, factors, stream);
}

template <class... Formula>
constexpr StepLaunchers<ops::RuleList<Formula...>> launchers_of(ops::RuleList<Formula...>) {
  return {{launch_steps<Formula>}...};
}

// ---- the norm of many tensors -----------------------------------------------------------------------------

enum class Power : int { two, any, largest };

RG_HD double joined(Power power, double a, double b) {
  if (power != Power::largest) return a + b;
  return a != a ? a : b != b || b > a ? b : a;
}

RG_HD double powered(Power power, double x, double p) {
  if (power == Power::two) return x * x;
  const double magnitude = x < 0 ? -x : x;
  return power == Power::any ? ::pow(magnitude, p) : magnitude;
}

// Combines the values of the threads of a block, as a tree; thread 0 gets the result.
__device__ inline double joined_block(Power power, double mine) {
  __shared__ double found[kThreads];
  const int thread = static_cast<int>(threadIdx.x);
  found[thread] = mine;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (thread < half) found[thread] = joined(power, found[thread], found[thread + half]);
  }
  return thread == 0 ? found[0] : 0;
}

__global__ void __launch_bounds__(kThreads) norm_kernel(const TotalNormCall call, const Power power) {
  const int64_t block = static_cast<int64_t>(blockIdx.x);
  const NormTensor t = call.tensors[row_of_block(call.tensors, call.count, block)];
  const int64_t begin = (block - t.first_block) * kNormElements;
  const int64_t end = begin + kNormElements < t.numel ? begin + kNormElements : t.numel;
  double mine = 0;
#pragma unroll 4
  for (int64_t i = begin + threadIdx.x; i < end; i += kThreads)
    mine = joined(power, mine, powered(power, load<double>(t.x, t.element, i), call.norm_type));
  const double all = joined_block(power, mine);
  if (threadIdx.x == 0) call.parts[block] = all;
}

__global__ void __launch_bounds__(kThreads) join_norms_kernel(const TotalNormCall call, const Power power) {
  double mine = 0;
  for (int64_t i = threadIdx.x; i < call.blocks; i += kThreads) mine = joined(power, mine, call.parts[i]);
  const double all = joined_block(power, mine);
  if (threadIdx.x > 0) return;
  *call.out = power == Power::two ? ::sqrt(all) : power == Power::any ? ::pow(all, 1 / call.norm_type) : all;
}

void launch_total_norm(const TotalNormCall& call, StreamHandle stream) {
  const double p = call.norm_type < 0 ? -call.norm_type : call.norm_type;
  const Power power = call.norm_type == 2 ? Power::two : p == scalar::kInfinity ? Power::largest : Power::any;
  if (call.blocks > 0) launch(norm_kernel, {static_cast<unsigned>(call.blocks)}, stream, call, power);
  launch(join_norms_kernel, {1}, stream, call, power);
}

}  // namespace

void add_optimizers_launchers(Launchers& all) {
  static constexpr OptimizerLaunchers own{launchers_of(ops::OptimizerFormulas()), launch_total_norm};
  all.optimizers = &own;
}

}  // namespace retrograd::cuda::RG_TARGET
