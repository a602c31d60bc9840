// Rows of attention for one instruction-set level: see cpu/kernels/attention_rows.h.
// Only plain loops here: nothing of the standard library, no throw (tools/isa.bzl says why).
#include "cpu/kernels/attention_rows.h"

#include "cpu/vec_math.h"

namespace retrograd::cpu::RG_ISA {
namespace {

constexpr int64_t kSumChunk = 1024;  // elements summed in registers of T; beyond, in double

// Fills x[n, ...) to a whole register and returns where that ends: exp(-inf) = 0, so full registers can be
// computed.
template <class T>
int64_t pad(T* x, int64_t n, T value) {
  int64_t end = n;
  for (; end % Vec<T>::size != 0; ++end) x[end] = value;
  return end;
}

// Zeros from the end of a row's scores to that of the block's.
template <class T>
void clear(T* x, int64_t begin, int64_t keys) {
  const int64_t end = (keys + kAttentionPad - 1) / kAttentionPad * kAttentionPad;
  for (int64_t i = begin; i < end; i += Vec<T>::size) Vec<T>(T(0)).store(x + i);
}

template <class T>
T largest(const T* x, int64_t n) {
  const T lowest = -static_cast<T>(__builtin_inf());
  Vec<T> even(lowest), odd(lowest);
  int64_t i = 0;
  for (; i + 2 * Vec<T>::size <= n; i += 2 * Vec<T>::size) {
    even = maximum(even, Vec<T>::load(x + i));
    odd = maximum(odd, Vec<T>::load(x + i + Vec<T>::size));
  }
  if (i < n) even = maximum(even, Vec<T>::load(x + i));
  return reduce_max(maximum(even, odd));
}

// x = exp(x - m) for n elements, a multiple of a register; their sum.
template <class T>
double exps(T* x, int64_t n, T m) {
  double sum = 0;
  for (int64_t begin = 0; begin < n; begin += kSumChunk) {
    const int64_t end = n - begin < kSumChunk ? n : begin + kSumChunk;
    Vec<T> total(T(0));
    for (int64_t i = begin; i < end; i += Vec<T>::size) {
      const Vec<T> e = exp(Vec<T>::load(x + i) - m);
      e.store(x + i);
      total += e;
    }
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
    const int64_t end = pad(row, block.row_keys(r), -static_cast<T>(__builtin_inf()));
    lse[r] = largest(row, end);
    factor[r] = static_cast<T>(exps(row, end, lse[r]));
    clear(row, end, block.keys);
  }
  finish(lse, factor, block.rows);
}

template <class T>
void gradients(T* x, T* dp, const ScoreBlock& block, const T* lse, const T* delta) {
  for (int64_t r = 0; r < block.rows; ++r) {
    T *row = x + r * block.width, *grad = dp + r * block.width;
    const int64_t end = pad(row, block.row_keys(r), -static_cast<T>(__builtin_inf()));
    pad(grad, block.row_keys(r), T(0));
    const Vec<T> shift(lse[r]), d(delta[r]);
    for (int64_t i = 0; i < end; i += Vec<T>::size) {
      const Vec<T> p = exp(Vec<T>::load(row + i) - shift);
      p.store(row + i);
      (p * (Vec<T>::load(grad + i) - d)).store(grad + i);
    }
    clear(row, end, block.keys);
    clear(grad, end, block.keys);
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
