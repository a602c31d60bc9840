// Rows of attention for one instruction-set level: see cpu/kernels/attention_rows.h.
// Only plain loops here: nothing of the standard library, no throw (tools/isa.bzl says why).
#include "cpu/kernels/attention_rows.h"

#include "cpu/kernels/row_lanes.h"
#include "cpu/vec_math.h"

namespace retrograd::cpu::RG_ISA {
namespace {

constexpr int64_t kSumChunk = 1024;  // elements summed in registers of T; beyond, in double

// f(i, keep) for each register of a row of n elements; keep(v) has zeros in the lanes beyond the row. There is room
// to read and write whole registers.
template <class T, class F>
[[gnu::always_inline]] inline void each_register(int64_t n, const F& f) {
  int64_t i = 0;
  for (; i + Vec<T>::size <= n; i += Vec<T>::size) f(i, [](Vec<T> v) { return v; });
  if (i < n) f(i, [count = n - i](Vec<T> v) { return keep_part(v, count); });
}

// Zeros behind a row of n scores, from the next register to where the block ends.
template <class T>
void clear(T* x, int64_t n, int64_t keys) {
  const int64_t end = (keys + kAttentionPad - 1) / kAttentionPad * kAttentionPad;
  for (int64_t i = (n + Vec<T>::size - 1) / Vec<T>::size * Vec<T>::size; i < end; i += Vec<T>::size)
    Vec<T>(T(0)).store(x + i);
}

// x = exp(x - m) for n elements; their sum.
template <class T>
double exps(T* x, int64_t n, T m) {
  double sum = 0;
  for (int64_t begin = 0; begin < n; begin += kSumChunk) {
    Vec<T> total(T(0));
    each_register<T>(n - begin < kSumChunk ? n - begin : kSumChunk, [&](int64_t i, auto keep) {
      const Vec<T> e = keep(exp(Vec<T>::load(x + begin + i) - m));
      e.store(x + begin + i);
      total += e;
    });
    sum += static_cast<double>(reduce_add(total));
  }
  return sum;
}

// lse holds the largest scores and becomes lse; factor holds the sums and becomes their reciprocals.
template <class T>
void finish(T* lse, T* factor, int64_t rows) {
  for (int64_t r = 0; r < rows; r += Vec<T>::size) {
    T m[Vec<T>::size] = {}, s[Vec<T>::size] = {};
    const int64_t count = rows - r < Vec<T>::size ? rows - r : Vec<T>::size;
    for (int64_t i = 0; i < count; ++i) {
      m[i] = lse[r + i];
      s[i] = factor[r + i];
    }
    const Vec<T> sum = Vec<T>::load(s);
    (Vec<T>::load(m) + log(sum)).store(m);
    select(sum == 0, 0, 1 / sum).store(s);
    for (int64_t i = 0; i < count; ++i) {
      lse[r + i] = m[i];
      factor[r + i] = s[i];
    }
  }
}

template <class T>
void weights(T* x, const ScoreBlock& block, T* lse, T* factor) {
  for (int64_t r = 0; r < block.rows; ++r) {
    T* row = x + r * block.width;
    const int64_t keys = block.row_keys(r);
    lse[r] = row_max(row, keys);
    factor[r] = static_cast<T>(exps(row, keys, lse[r]));
    clear(row, keys, block.keys);
  }
  finish(lse, factor, block.rows);
}

template <class T>
void gradients(T* x, T* dp, const ScoreBlock& block, const T* lse, const T* delta) {
  for (int64_t r = 0; r < block.rows; ++r) {
    T *row = x + r * block.width, *grad = dp + r * block.width;
    const int64_t keys = block.row_keys(r);
    each_register<T>(keys, [&, shift = Vec<T>(lse[r]), d = Vec<T>(delta[r])](int64_t i, auto keep) {
      const Vec<T> p = exp(Vec<T>::load(row + i) - shift);
      keep(p).store(row + i);
      keep(p * (Vec<T>::load(grad + i) - d)).store(grad + i);
    });
    clear(row, keys, block.keys);
    clear(grad, keys, block.keys);
  }
}

template <class T>
T inner(const T* a, const T* b, int64_t n) {
  Vec<T> total(T(0));
  int64_t i = 0;
  for (; i + Vec<T>::size <= n; i += Vec<T>::size) total += Vec<T>::load(a + i) * Vec<T>::load(b + i);
  T sum = reduce_add(total);
  for (; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

template <class T>
constexpr AttentionRowTable<T> table{weights<T>, gradients<T>, inner<T>};

}  // namespace

template <class T>
const AttentionRowTable<T>& attention_row_table() {
  return table<T>;
}
template const AttentionRowTable<float>& attention_row_table<float>();
template const AttentionRowTable<double>& attention_row_table<double>();

}  // namespace retrograd::cpu::RG_ISA
