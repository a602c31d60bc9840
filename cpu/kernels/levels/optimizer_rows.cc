// Steps of optimizers for one instruction-set level: see cpu/kernels/levels/optimizer_rows.h.
//
// All of an element's update is done in one turn of one loop: each number is read and written once.
// for_lanes() calls the body for each register of elements; the last one may be partly filled and then goes
// through memory (Lanes), so that all elements are computed by the same instructions. Only plain loops here:
// nothing of the standard library, no throw (tools/isa.bzl says why).
#include "cpu/kernels/levels/optimizer_rows.h"

#include "cpu/vec/vec.h"

namespace retrograd::inline v0::cpu::RG_ISA {
namespace {

// Calls body(lanes, at, count) for registers from begin to end; the last may be a part of one, through memory.
template <class T>
struct Lanes {
  using V = Vec<T>;
  int64_t at;
  int64_t count;
  V load(const T* p) const {
    if (count == V::size) return V::load(p + at);
    T lanes[V::size];
    for (int64_t i = 0; i < V::size; ++i) lanes[i] = p[at + (i < count ? i : count - 1)];
    return V::load(lanes);
  }
  void store(T* p, V v) const {
    if (count == V::size) return v.store(p + at);
    T lanes[V::size];
    v.store(lanes);
    for (int64_t i = 0; i < count; ++i) p[at + i] = lanes[i];
  }
};

template <class T, class F>
[[gnu::always_inline]] inline void for_lanes(int64_t begin, int64_t end, const F& body) {
  constexpr int64_t size = Vec<T>::size;
  for (; begin + size <= end; begin += size) body(Lanes<T>{begin, size});
  if (begin < end) body(Lanes<T>{begin, end - begin});
}

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
  for_lanes<T>(begin, end, [&](const Lanes<T>& at) {
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
