// Steps of optimizers on the CPU: numbers from attributes, the elements cut into chunks by their number alone, then the loops of
// cpu/kernels/rows_optimizers.h. A chunk is small enough to share out, large enough to pay for it.
#include <cmath>

#include "cpu/features.h"
#include "cpu/kernels/rows_optimizers.h"
#include "cpu/kernels/table.h"
#include "cpu/parallel.h"
#include "ops/optimizer_steps.h"

namespace retrograd::cpu {
namespace {

constexpr int64_t kChunk = 1 << 14;  // elements

template <class T>
const OptimizerTable<T>& best_table() {
#if defined(__x86_64__)
  switch (level()) {
    case Level::avx512: return avx512::optimizer_table<T>();
    case Level::avx2: return avx2::optimizer_table<T>();
    case Level::baseline: break;
  }
#endif
  return baseline::optimizer_table<T>();
}

template <class T>
T* memory(TensorImpl* x) {
  return x ? static_cast<T*>(x->data()) : nullptr;
}

template <class T>
void adamw(const Call& call, TensorImpl* const* outputs) {
  const auto& a = call.attrs_as<ops::AdamWStep::Attrs>();
  const double lr = a.lr.to_double(), beta1 = a.beta1.to_double(), beta2 = a.beta2.to_double(),
               t = a.step.to_double();
  const double correction1 = 1 - std::pow(beta1, t), correction2 = 1 - std::pow(beta2, t);
  const AdamWNumbers<T> numbers{a.maximize ? T{-1} : T{1},
                                static_cast<T>(1 - lr * a.weight_decay.to_double()),
                                static_cast<T>(1 - beta1),
                                static_cast<T>(beta2),
                                static_cast<T>(1 - beta2),
                                static_cast<T>(lr / correction1),
                                static_cast<T>(1 / std::sqrt(correction2)),
                                static_cast<T>(a.eps.to_double())};
  const auto& in = call.operands;
  const AdamWState<T> state{
      memory<T>(in[0]),      memory<T>(in[1]),      memory<T>(in[2]),
      memory<T>(in[3]),      memory<T>(in[4]),      memory<T>(outputs[0]),
      memory<T>(outputs[1]), memory<T>(outputs[2]), in[3] ? memory<T>(outputs[3]) : nullptr};
  parallel_range(in[0]->numel().raw(), kChunk,
                 [&](int64_t begin, int64_t end) { best_table<T>().adamw(numbers, state, begin, end); });
}

template <class T>
void sgd(const Call& call, TensorImpl* const* outputs) {
  const auto& a = call.attrs_as<ops::SGDStep::Attrs>();
  const SGDNumbers<T> numbers{a.maximize ? T{-1} : T{1},
                              static_cast<T>(a.weight_decay.to_double()),
                              static_cast<T>(a.lr.to_double()),
                              static_cast<T>(a.momentum.to_double()),
                              static_cast<T>(a.keep.to_double()),
                              static_cast<T>(a.fresh.to_double()),
                              a.nesterov};
  const auto& in = call.operands;
  const SGDState<T> state{memory<T>(in[0]), memory<T>(in[1]), memory<T>(in[2]), memory<T>(outputs[0]),
                          in[1] ? memory<T>(outputs[1]) : nullptr};
  parallel_range(in[0]->numel().raw(), kChunk,
                 [&](int64_t begin, int64_t end) { best_table<T>().sgd(numbers, state, begin, end); });
}

template <void (*F32)(const Call&, TensorImpl* const*), void (*F64)(const Call&, TensorImpl* const*)>
void by_dtype(const Call& call, TensorImpl* const* outputs) {
  for (const TensorImpl* x : call.operands)
    if (x && !x->is_contiguous()) fail_call(call, Category::bad_argument, "an operand is not contiguous");
  (call.operands[0]->dtype() == kFloat64 ? F64 : F32)(call, outputs);
}

}  // namespace

void add_optimizer_kernels(KernelTable& table) {
  table.set(&ops::info<ops::AdamWStep>, by_dtype<adamw<float>, adamw<double>>);
  table.set(&ops::info<ops::SGDStep>, by_dtype<sgd<float>, sgd<double>>);
}

}  // namespace retrograd::cpu
