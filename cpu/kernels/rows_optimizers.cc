// See cpu/kernels/rows_optimizers.h. All of an element's update is one turn of one loop: each number is read and written once. Only plain
// loops here: nothing of the standard library, no throw (tools/isa.bzl says why).
#include "cpu/kernels/rows_optimizers.h"

#include "cpu/vec.h"

namespace retrograd::cpu::RG_ISA {
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

template <class T>
void adamw(const AdamWNumbers<T>& numbers, const AdamWState<T>& state, int64_t begin, int64_t end) {
  using V = Vec<T>;
  const AdamWNumbers<T> a = numbers;  // here, where no store of the loop can change them
  const AdamWState<T> s = state;
  for_lanes<T>(begin, end, [&](const Lanes<T>& at) {
    const V g = V(a.sign) * at.load(s.g), m_old = at.load(s.m);
    const V m = m_old + (g - m_old) * V(a.fresh1);
    const V v = V(a.beta2) * at.load(s.v) + V(a.fresh2) * g * g;
    at.store(s.m_out, m);
    at.store(s.v_out, v);
    V largest = v;
    if (s.largest) {
      const V before = at.load(s.largest);
      largest = select(v > before, v, before);
      at.store(s.largest_out, largest);
    }
    at.store(s.p_out, at.load(s.p) * V(a.keep) - V(a.size) * (m / (sqrt(largest) * V(a.scale2) + V(a.eps))));
  });
}

template <class T>
void sgd(const SGDNumbers<T>& numbers, const SGDState<T>& state, int64_t begin, int64_t end) {
  using V = Vec<T>;
  const SGDNumbers<T> a = numbers;
  const SGDState<T> s = state;
  for_lanes<T>(begin, end, [&](const Lanes<T>& at) {
    const V p = at.load(s.p);
    V g = V(a.sign) * at.load(s.g) + V(a.decay) * p;
    if (s.buffer) {
      const V buffer = V(a.keep) * at.load(s.buffer) + V(a.fresh) * g;
      at.store(s.buffer_out, buffer);
      g = a.nesterov ? g + V(a.momentum) * buffer : buffer;
    }
    at.store(s.p_out, p - V(a.lr) * g);
  });
}

}  // namespace

template <class T>
const OptimizerTable<T>& optimizer_table() {
  static constexpr OptimizerTable<T> table{adamw<T>, sgd<T>};
  return table;
}
template const OptimizerTable<float>& optimizer_table<float>();
template const OptimizerTable<double>& optimizer_table<double>();

}  // namespace retrograd::cpu::RG_ISA
