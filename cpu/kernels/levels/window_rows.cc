// Windows over contiguous rows of float or double, for one instruction-set level: see
// cpu/kernels/levels/window_rows.h.
//
// Block is a register of results: which elements each takes, tap by tap, and in which lanes a tap exists.
// combine() sums along a row, add_rows() across rows, max_rows() finds the largest element and its place
// (Largest); windows that advance by two elements have a quicker way (max_halving_block). Results beyond the
// last are computed and not stored. Only plain loops here: nothing of the standard library, no throw
// (tools/isa.bzl says why).
#include "cpu/kernels/levels/window_rows.h"
#include "cpu/kernels/levels/row_lanes.h"

namespace retrograd::inline v0::cpu::RG_ISA {
namespace {

// A register of results of Windows, from number `at` on; those beyond the last repeat it.
template <class T>
struct Block {
  using V = Vec<T>;
  using Ints = typename V::Ints;

  Block(const Windows<T>& w, int64_t at)
      : first(load(w.first + at)),
        count(load(w.count + at)),
        base(w.first[at]),
        offset(first - (Ints{} + w.first[at])),
        span(w.first[at + V::size - 1] - w.first[at]),
        sure(w.sure) {
    if (!w.ordered) find_span();
  }

  void find_span() {
    LaneOf<T> low = first[0], high = first[0];
    for (int i = 1; i < V::size; ++i) {
      low = first[i] < low ? first[i] : low;
      high = first[i] > high ? first[i] : high;
    }
    base = low;
    offset = first - (Ints{} + low);
    span = high - low;
  }

  static Ints load(const LaneOf<T>* p) { return V::load(reinterpret_cast<const T*>(p)).ints(); }

  // Lanes of the results that have a tap k.
  Mask<T> live(int64_t k) const { return Mask<T>(count > static_cast<LaneOf<T>>(k)); }

  // For each result the element `shift` after its first; in lanes that are not live, anything.
  [[gnu::always_inline]] V pick(const T* x, int64_t shift, Mask<T> live, bool all) const {
    const T* from = x + base + shift;
    if (span < V::size) return V(__builtin_shuffle(V::load(from).v, offset));
    if (span < 2 * V::size) return V(__builtin_shuffle(V::load(from).v, V::load(from + V::size).v, offset));
    return all ? pick_all(from, offset) : pick_live(from, offset, live);
  }
  [[gnu::noinline]] static V pick_all(const T* from, Ints offset) {
    T lanes[V::size];
    LaneOf<T> places[V::size];
    V(offset).store(reinterpret_cast<T*>(places));
    for (int i = 0; i < V::size; ++i) lanes[i] = from[places[i]];
    return V::load(lanes);
  }
  [[gnu::noinline]] static V pick_live(const T* from, Ints offset, Mask<T> live) {
    V lanes = T(0);
    for (int i = 0; i < V::size; ++i)
      if (live.v[i]) lanes.v[i] = from[offset[i]];
    return lanes;
  }
  // Whether two neighbouring registers have the elements for each of `taps` taps, and each result has these.
  bool is_plain(int64_t taps) const { return span < 2 * V::size && (sure == taps || all(live(taps - 1))); }

  // Calls f(k, live lanes, whether these are all) for each tap that some result has.
  template <class F>
  [[gnu::always_inline]] void for_taps(int64_t taps, const F& f) const {
    for (int64_t k = 0; k < taps; ++k) {
      const Mask<T> lanes = live(k);
      if (k < sure)
        f(k, lanes, true);
      else if (any(lanes))
        f(k, lanes, false);
      else
        return;
    }
  }

  Ints first, count;
  LaneOf<T> base;
  Ints offset;
  int64_t span, sure;
};

template <class T>
void combine(const T* x, const Windows<T>& w, T* y) {
  using V = Vec<T>;
  for (int64_t j = 0; j < w.out; j += V::size) {
    const Block<T> block(w, j);
    V sum = T(0);
    block.for_taps(w.taps, [&](int64_t k, Mask<T> live, bool all) {
      V v = block.pick(x, k * w.step, live, all);
      if (w.weight) v *= V::load(w.weight + k * w.pitch + j);
      if (k > 0) v = sum + v;
      sum = all ? v : select(live, v, sum);
    });
    if (j + V::size <= w.out)
      sum.store(y + j);
    else
      store_part(sum, y + j, w.out - j);
  }
}

// Row by row, as memory is read fastest; y stays in the first cache.
template <class T>
void add_rows(const T* const* rows, const T* weight, int64_t pitch, int64_t count, int64_t n,
              T* __restrict y) {
  if (count == 0) __builtin_memset(y, 0, static_cast<size_t>(n) * sizeof(T));
  for (int64_t k = 0; k < count; ++k) {
    const T* __restrict x = rows[k];
    const T w = weight ? weight[k * pitch] : T(1);
    if (k == 0 && !weight)
      __builtin_memcpy(y, x, static_cast<size_t>(n) * sizeof(T));
    else if (k == 0)
      for (int64_t i = 0; i < n; ++i) y[i] = w * x[i];
    else if (!weight)
      for (int64_t i = 0; i < n; ++i) y[i] += x[i];
    else
      for (int64_t i = 0; i < n; ++i) y[i] += w * x[i];
  }
}

template <class T>
void divide(const T* x, const T* by, T scale, int64_t n, T* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] / (by[i] * scale);
}

// The largest elements so far, and their places.
template <class T>
struct Largest {
  using V = Vec<T>;
  V best = -static_cast<T>(__builtin_inf());
  typename V::Ints place;

  // Where v is larger, in `live` lanes, it is from now on, at `first`.
  [[gnu::always_inline]] void meet(V v, typename V::Ints first) { take((v > best) | isnan(v), v, first); }
  [[gnu::always_inline]] void meet(V v, typename V::Ints first, Mask<T> live) {
    take(((v > best) | isnan(v)) & live, v, first);
  }

 private:
  [[gnu::always_inline]] void take(Mask<T> better, V v, typename V::Ints first) {
    best = select(better, v, best);
    place = better.v ? first : place;
  }
};

template <class T>
[[gnu::always_inline]] inline void max_block(const Block<T>& block, const T* const* rows,
                                             const LaneOf<T>* place, int64_t count, const Windows<T>& w,
                                             Largest<T>* largest) {
  for (int64_t r = 0; r < count; ++r)
    block.for_taps(w.taps, [&](int64_t k, Mask<T> live, bool all) {
      largest->meet(block.pick(rows[r], k * w.step, live, all),
                    block.first + static_cast<LaneOf<T>>(place[r] + k * w.step), live);
    });
}

template <class T>
[[gnu::always_inline]] inline void max_plain_block(const Block<T>& block, const T* const* rows,
                                                   const LaneOf<T>* place, int64_t count, const Windows<T>& w,
                                                   Largest<T>* largest) {
  using V = Vec<T>;
  for (int64_t r = 0; r < count; ++r)
    for (int64_t k = 0; k < w.taps; ++k) {
      const T* const from = rows[r] + block.base + k * w.step;
      largest->meet(V(__builtin_shuffle(V::load(from).v, V::load(from + V::size).v, block.offset)),
                    block.first + static_cast<LaneOf<T>>(place[r] + k * w.step));
    }
}

// Every second element of two neighbouring registers, from `first` on.
template <class T>
[[gnu::always_inline]] inline Vec<T> every_second(Vec<T> low, Vec<T> high, int first) {
  typename Vec<T>::Ints order;
  for (int i = 0; i < Vec<T>::size; ++i) order[i] = 2 * i + first;
  return Vec<T>(__builtin_shuffle(low.v, high.v, order));
}

// A register of results, the first with the window at `at`, of Windows that are halving: what two registers of a row have is shared by two
// taps, and the compiler knows how to take it apart.
template <class T>
[[gnu::always_inline]] inline void max_halving_block(int64_t at, typename Vec<T>::Ints windows,
                                                     const T* const* rows, const LaneOf<T>* place,
                                                     int64_t count, int64_t taps, Largest<T>* largest) {
  using V = Vec<T>;
  for (int64_t r = 0; r < count; ++r)
    for (int64_t k = 0; k < taps; k += 2) {
      const T* const from = rows[r] + at + k;
      const V low = V::load(from), high = V::load(from + V::size);
      const typename V::Ints first = windows + static_cast<LaneOf<T>>(place[r] + k);
      largest->meet(every_second(low, high, 0), first);
      if (k + 1 < taps) largest->meet(every_second(low, high, 1), first + 1);
    }
}

template <class T>
[[gnu::always_inline]] inline void store_places(typename Vec<T>::Ints from, int64_t n, int64_t* to) {
  LaneOf<T> lanes[Vec<T>::size];
  Vec<T>(from).store(reinterpret_cast<T*>(lanes));
  for (int64_t i = 0; i < n; ++i) to[i] = lanes[i];
}

template <class T>
void max_rows(const T* const* rows, const LaneOf<T>* place, int64_t count, const Windows<T>& w, T* values,
              int64_t* places) {
  using V = Vec<T>;
  int64_t j = 0;
  if (w.halving) {
    typename V::Ints first = Block<T>::load(w.first);
    for (; j + V::size <= w.out; j += V::size, first += 2 * V::size) {
      Largest<T> largest;
      largest.place = first + place[0];
      max_halving_block(w.first[0] + 2 * j, first, rows, place, count, w.taps, &largest);
      largest.best.store(values + j);
      store_places<T>(largest.place, V::size, places + j);
    }
  }
  for (; j < w.out; j += V::size) {
    const Block<T> block(w, j);
    Largest<T> largest;
    largest.place = block.first + place[0];
    if (block.is_plain(w.taps))
      max_plain_block(block, rows, place, count, w, &largest);
    else
      max_block(block, rows, place, count, w, &largest);
    if (j + V::size <= w.out) {
      largest.best.store(values + j);
      store_places<T>(largest.place, V::size, places + j);
    } else {
      store_part(largest.best, values + j, w.out - j);
      store_places<T>(largest.place, w.out - j, places + j);
    }
  }
}

}  // namespace

template <class T>
const WindowTable<T>& window_table() {
  static constexpr WindowTable<T> table{combine<T>, add_rows<T>, divide<T>, max_rows<T>};
  return table;
}
template const WindowTable<float>& window_table<float>();
template const WindowTable<double>& window_table<double>();

}  // namespace retrograd::cpu::RG_ISA
