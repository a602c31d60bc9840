// Steps of optimizers and the norm of many tensors: see cuda/kernels/optimizers_call.h. All of an element's
// step is computed at once: each number is read and written once, 16 bytes at a time where tensors lie so;
// those of 16 bits are computed in float32.
// The formulas are those of cpu/kernels/rows_optimizers.cc, and give the same bits. Norms are summed in
// float64, a block's elements as a tree over its threads, blocks in order of size alone.
#include "cuda/kernels/optimizers_call.h"

#include "cuda/kernels/launch.h"
// Behind it, since it asks for the target.
#include "cuda/kernels/elements.h"
#include "ops/scalar_math.h"

namespace retrograd::cuda::RG_TARGET {
namespace {

/// The row of a table that a block is about: the last one that begins at it or before.
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

template <class T>
struct AdamW {
  using Numbers = AdamWNumbers;
  static constexpr int inputs = 5, outputs = 4;
  T sign, keep, fresh1, beta2, fresh2, size, scale2, eps;

  RG_HD explicit AdamW(const AdamWNumbers& a)
      : sign(static_cast<T>(a.sign)),
        keep(static_cast<T>(a.keep)),
        fresh1(static_cast<T>(a.fresh1)),
        beta2(static_cast<T>(a.beta2)),
        fresh2(static_cast<T>(a.fresh2)),
        size(static_cast<T>(a.size)),
        scale2(static_cast<T>(a.scale2)),
        eps(static_cast<T>(a.eps)) {}

  // x: p, m, v, largest, g. y: p, m, v, largest.
  RG_HD void step(const StepTensors& s, const T* x, T* y) const {
    const T g = sign * x[4];
    y[1] = x[1] + (g - x[1]) * fresh1;
    y[2] = beta2 * x[2] + fresh2 * g * g;
    T largest = y[2];
    if (s.in[3]) largest = y[3] = y[2] > x[3] ? y[2] : x[3];
    y[0] = x[0] * keep - size * (y[1] / (scalar::sqrt(scalar::Lane<T>(largest)).v * scale2 + eps));
  }
};

template <class T>
struct SGD {
  using Numbers = SGDNumbers;
  static constexpr int inputs = 3, outputs = 2;
  T sign, decay, lr, momentum, keep, fresh;
  bool nesterov;

  RG_HD explicit SGD(const SGDNumbers& a)
      : sign(static_cast<T>(a.sign)),
        decay(static_cast<T>(a.decay)),
        lr(static_cast<T>(a.lr)),
        momentum(static_cast<T>(a.momentum)),
        keep(static_cast<T>(a.keep)),
        fresh(static_cast<T>(a.fresh)),
        nesterov(a.nesterov != 0) {}

  // x: p, buffer, g. y: p, buffer.
  RG_HD void step(const StepTensors& s, const T* x, T* y) const {
    T g = sign * x[2] + decay * x[0];
    if (s.in[1]) {
      y[1] = keep * x[1] + fresh * g;
      g = nesterov ? g + momentum * y[1] : y[1];
    }
    y[0] = x[0] - lr * g;
  }
};

// N elements from `at` on, stored as S.
template <class S, int N, class T, template <class> class Rule>
RG_HD void step_elements(const Rule<T>& rule, const StepTensors& s, int64_t at) {
  constexpr int inputs = Rule<T>::inputs, outputs = Rule<T>::outputs;
  Pack<S, N> in[inputs] = {}, out[outputs];
  for (int k = 0; k < inputs; ++k)
    if (s.in[k]) in[k] = *reinterpret_cast<const Pack<S, N>*>(static_cast<const S*>(s.in[k]) + at);
  for (int i = 0; i < N; ++i) {
    T x[inputs], y[outputs] = {};
    for (int k = 0; k < inputs; ++k) x[k] = converted<T>(in[k].v[i]);
    rule.step(s, x, y);
    for (int k = 0; k < outputs; ++k) out[k].v[i] = converted<S>(y[k]);
  }
  for (int k = 0; k < outputs; ++k)
    if (s.out[k]) *reinterpret_cast<Pack<S, N>*>(static_cast<S*>(s.out[k]) + at) = out[k];
}

// `held`: what the rule is made of, or null: then it is `given`.
template <class S, class T, template <class> class Rule>
__global__ void __launch_bounds__(kThreads)
    step_kernel(const StepList list, const Rule<T> given, const typename Rule<T>::Numbers* held) {
  const Rule<T> rule = held ? Rule<T>(*held) : given;
  constexpr int N = 16 / sizeof(S);
  const int64_t block = static_cast<int64_t>(blockIdx.x);
  const StepTensors s = list.steps[row_of_block(list.steps, list.count, block)];
  const int64_t begin = (block - s.first_block) * kStepElements;
  const int64_t end = begin + kStepElements < s.numel ? begin + kStepElements : s.numel;
  for (int64_t at = begin + static_cast<int64_t>(threadIdx.x) * N; at < end; at += kThreads * N) {
    if (s.is_aligned && at + N <= end)
      step_elements<S, N>(rule, s, at);
    else
      for (int64_t i = at; i < at + N && i < end; ++i) step_elements<S, 1>(rule, s, i);
  }
}

template <class S, class T, template <class> class Rule, class Numbers>
void launch_steps_of(const StepList& list, const Given<Numbers>& numbers, StreamHandle stream) {
  launch(step_kernel<S, T, Rule>, {static_cast<unsigned>(list.blocks)}, stream, list, Rule<T>(numbers.value),
         numbers.held);
}

template <template <class> class Rule, class Numbers>
void launch_steps(const StepList& list, Element element, const Given<Numbers>& numbers, StreamHandle stream) {
  switch (element) {
    case Element::f64: return launch_steps_of<double, double, Rule>(list, numbers, stream);
    case Element::f16: return launch_steps_of<Half, float, Rule>(list, numbers, stream);
    case Element::bf16: return launch_steps_of<BFloat16, float, Rule>(list, numbers, stream);
    default: return launch_steps_of<float, float, Rule>(list, numbers, stream);
  }
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

// What the threads of a block found, as a tree; thread 0 gets it.
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

const OptimizerLaunchers& optimizer_launchers() {
  static constexpr OptimizerLaunchers all{launch_steps<AdamW, AdamWNumbers>, launch_steps<SGD, SGDNumbers>,
                                          launch_total_norm};
  return all;
}

}  // namespace retrograd::cuda::RG_TARGET
