// Steps of optimizers for one instruction-set level: see cpu/kernels/levels/optimizer_rows.h.
//
// All of an element's update is done in one turn of one loop: each number is read and written once.
// Only plain loops here: nothing of the standard library, no throw (tools/isa.bzl says why).
#include "cpu/kernels/levels/optimizer_rows.h"

#include "cpu/kernels/levels/row_lanes.h"

namespace retrograd::inline v0::cpu::RG_ISA {
namespace {

template <class T, class Formula>
void step(const typename Formula::Factors& given, const T* const* x, T* const* y, int64_t begin,
          int64_t end) {
  using V = Vec<T>;
  constexpr int inputs = Formula::inputs;
  // Copies, which no store of the loop can change.
  const typename Formula::Factors factors = given;
  const T* in[inputs];
  T* out[inputs - 1];
  ops::Present has{0};
  for (int k = 0; k < inputs; ++k) {
    in[k] = x[k];
    has.bits |= static_cast<uint32_t>(x[k] != nullptr) << k;
  }
  for (int k = 0; k + 1 < inputs; ++k) out[k] = y[k];
  const auto exists = [has](int k) { return !(Formula::optional >> k & 1) || has[k]; };
  each_register<T>(begin, end, [&](const Part<T>& at) {
    V old[inputs] = {}, made[inputs - 1] = {};
#pragma GCC unroll 8
    for (int k = 0; k < inputs; ++k)
      if (exists(k)) old[k] = at.load(in[k]);
    Formula::template step<V>(factors, has, old, made);
#pragma GCC unroll 8
    for (int k = 0; k + 1 < inputs; ++k)
      if (exists(k)) at.store(out[k], made[k]);
  });
}

template <class T, class... Formula>
constexpr OptimizerTable<T> table_of(ops::RuleList<Formula...>) {
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
