// Steps of optimizers for one instruction-set level: see cpu/kernels/levels/optimizer_rows.h.
//
// All of an element's update is done in one turn of one loop: each number is read and written once.
// Only plain loops here: nothing of the standard library, no throw (tools/isa.bzl says why).
#include "cpu/kernels/levels/optimizer_rows.h"

#include "cpu/kernels/levels/row_lanes.h"

namespace retrograd::inline v0::cpu::RG_ISA {
namespace {

template <class T, template <class> class Formula>
void step(const typename Formula<Vec<T>>::Numbers& numbers, const T* const* x, T* const* y, int64_t begin,
          int64_t end) {
  using V = Vec<T>;
  using F = Formula<V>;
  const F formula(numbers);
  const bool has_state = ops::has_state<F>(x);
  const auto exists = [has_state](int k) { return k != F::optional || has_state; };
  const T* in[F::inputs];  // here, where no store of the loop can change them
  T* out[F::outputs];
  for (int k = 0; k < F::inputs; ++k) in[k] = x[k];
  for (int k = 0; k < F::outputs; ++k) out[k] = y[k];
  each_register<T>(begin, end, [&](const Part<T>& at) {
    V old[F::inputs] = {}, made[F::outputs] = {};
#pragma GCC unroll 8
    for (int k = 0; k < F::inputs; ++k)
      if (exists(k)) old[k] = at.load(in[k]);
    formula.step(has_state, old, made);
#pragma GCC unroll 8
    for (int k = 0; k < F::outputs; ++k)
      if (exists(k)) at.store(out[k], made[k]);
  });
}

template <class T, template <class> class... Formula>
constexpr OptimizerTable<T> table_of(ops::FormulaList<Formula...>) {
  return {{step<T, Formula>}...};
}

}  // namespace

template <class T>
const OptimizerTable<T>& optimizer_table() {
  static constexpr OptimizerTable<T> table = table_of<T>(ops::OptimizerFormulas());
  return table;
}
template const OptimizerTable<float>& optimizer_table<float>();
template const OptimizerTable<double>& optimizer_table<double>();

}  // namespace retrograd::cpu::RG_ISA
