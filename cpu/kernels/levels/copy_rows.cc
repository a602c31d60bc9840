// See cpu/kernels/levels/copy_rows.h. Only plain loops here: nothing of the standard library, no throw
// (tools/isa.bzl says why).
//
// A transpose goes block by block. A block of N x N elements lies in N registers; in log2(N) stages registers
// i and i + N/2, ... exchange interleaved halves, which is the perfect shuffle of Eklundh's algorithm.
#include "cpu/kernels/levels/copy_rows.h"

#include "cpu/vec/vec.h"
#include "ops/convert.h"

namespace retrograd::inline v0::cpu::RG_ISA {
namespace {

template <class From, class T>
void load(const void* source, int64_t step, int64_t n, T* to) {
  const From* from = static_cast<const From*>(source);
  if (step == 1) {
    for (int64_t i = 0; i < n; ++i) to[i] = convert<T>(from[i]);
  } else if (step == 0) {
    const T value = convert<T>(*from);
    for (int64_t i = 0; i < n; ++i) to[i] = value;
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = convert<T>(from[i * step]);
  }
}

// The bits of BFloat16(x), in half the instructions: the sign takes part, as no carry reaches it unless x is NaN.
[[gnu::always_inline]] inline uint16_t bfloat16_bits(float x) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, x);
  const uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1), nan = (bits & 0x80000000u) | 0x7fc00000u;
  return static_cast<uint16_t>((x != x ? nan : rounded) >> 16);
}

template <class To, class T>
void store(const T* from, int64_t n, void* target, int64_t step) {
  To* to = static_cast<To*>(target);
  if constexpr (std::is_same_v<To, BFloat16> && std::is_same_v<T, float>) {
    if (step == 1) {
      for (int64_t i = 0; i < n; ++i) to[i].bits = bfloat16_bits(from[i]);
      return;
    }
  }
  if (step == 1)
    for (int64_t i = 0; i < n; ++i) to[i] = convert<To>(from[i]);
  else
    for (int64_t i = 0; i < n; ++i) to[i * step] = convert<To>(from[i]);
}

// n bytes in words of a size, the last one again from the end.
template <int size>
[[gnu::always_inline]] inline void move_words(const char* from, int64_t n, char* to) {
  struct Word {
    char bytes[size];
  };
  Word last;
  __builtin_memcpy(&last, from + n - size, size);
  for (int64_t i = 0; i + size <= n; i += size) __builtin_memcpy(to + i, from + i, size);
  __builtin_memcpy(to + n - size, &last, size);
}

// Short runs without a call.
void move_bytes(const char* from, int64_t n, char* to) {
  if (n < 16 || n > 512)
    __builtin_memcpy(to, from, static_cast<size_t>(n));
  else if (n < 64)
    move_words<16>(from, n, to);
  else
    move_words<64>(from, n, to);
}

// n times a value. From the first line of the cache on in whole ones: stores across two cost twice.
template <class Bits>
void fill_run(Bits value, int64_t n, Bits* to) {
  constexpr int64_t kLine = 64 / sizeof(Bits);
  int64_t i = 0;
  if (n >= 4 * kLine) {
    const int64_t skip = static_cast<int64_t>(reinterpret_cast<uintptr_t>(to) % 64 / sizeof(Bits));
    for (; i < (kLine - skip) % kLine; ++i) to[i] = value;
    Bits* const lines = static_cast<Bits*>(__builtin_assume_aligned(to + i, 64));
    const int64_t whole = (n - i) / kLine * kLine;
    for (int64_t k = 0; k < whole; ++k) lines[k] = value;
    i += whole;
  }
  for (; i < n; ++i) to[i] = value;
}

/// A number that the compiler knows.
template <int64_t value>
struct Constant {
  operator int64_t() const { return value; }
};

template <class Bits>
void move(const void* source, int64_t step, int64_t n, void* target, int64_t to_step) {
  const Bits* from = static_cast<const Bits*>(source);
  Bits* to = static_cast<Bits*>(target);
  if (to_step != 1) {
    for (int64_t i = 0; i < n; ++i) to[i * to_step] = from[i * step];
  } else if (step == 1) {
    move_bytes(static_cast<const char*>(source), n * static_cast<int64_t>(sizeof(Bits)),
               static_cast<char*>(target));
  } else if (step == 0) {
    fill_run(*from, n, to);
  } else if (step == -1) {
    for (int64_t i = 0; i < n; ++i) to[i] = from[-i];
  } else if (step == 2) {
    for (int64_t i = 0; i < n; ++i) to[i] = from[2 * i];
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = from[i * step];
  }
}

// Runs of one length, known to the compiler where N is not 0.
template <class Bits, int N, class Step>
[[gnu::always_inline]] inline void runs_of(const Bits* from, int64_t stride, Step step, int64_t runs,
                                           int64_t n, Bits* to, int64_t to_stride) {
  for (int64_t j = 0; j < runs; ++j, from += stride, to += to_stride)
    for (int64_t i = 0; i < (N ? N : n); ++i) to[i] = from[i * step];
}

template <class Bits>
void runs(const void* source, int64_t stride, int64_t step, int64_t runs, int64_t n, void* target,
          int64_t to_stride) {
  const Bits* from = static_cast<const Bits*>(source);
  Bits* to = static_cast<Bits*>(target);
  using One = Constant<1>;
  using Zero = Constant<0>;
  if (step == 1) {
    if (n == 16) return runs_of<Bits, 16>(from, stride, One(), runs, n, to, to_stride);
    if (n == 8) return runs_of<Bits, 8>(from, stride, One(), runs, n, to, to_stride);
    if (n == 4) return runs_of<Bits, 4>(from, stride, One(), runs, n, to, to_stride);
    const int64_t bytes = n * static_cast<int64_t>(sizeof(Bits));
    for (int64_t j = 0; j < runs; ++j, from += stride, to += to_stride)
      move_bytes(reinterpret_cast<const char*>(from), bytes, reinterpret_cast<char*>(to));
    return;
  }
  if (step == 0 && n == 2) return runs_of<Bits, 2>(from, stride, Zero(), runs, n, to, to_stride);
  if (step == 0 && n == 3) return runs_of<Bits, 3>(from, stride, Zero(), runs, n, to, to_stride);
  if (step == 0 && n == 4) return runs_of<Bits, 4>(from, stride, Zero(), runs, n, to, to_stride);
  if (n == 2) return runs_of<Bits, 2>(from, stride, step, runs, n, to, to_stride);
  if (n == 3) return runs_of<Bits, 3>(from, stride, step, runs, n, to, to_stride);
  if (n == 4) return runs_of<Bits, 4>(from, stride, step, runs, n, to, to_stride);
  runs_of<Bits, 0>(from, stride, step, runs, n, to, to_stride);
}

template <class Bits>
void fill(const void* value, int64_t n, void* target) {
  fill_run(*static_cast<const Bits*>(value), n, static_cast<Bits*>(target));
}

// Registers for a block of an element's type: all of the level's width for four and eight bytes.
template <class Bits>
struct Block;
template <>
struct Block<uint8_t> {
  typedef uint8_t Register __attribute__((vector_size(16)));
  typedef uint8_t Memory __attribute__((vector_size(16), aligned(1), may_alias));
};
template <>
struct Block<uint16_t> {
  typedef uint16_t Register __attribute__((vector_size(16)));
  typedef uint16_t Memory __attribute__((vector_size(16), aligned(2), may_alias));
};
template <>
struct Block<uint32_t> {
  typedef uint32_t Register __attribute__((vector_size(kVectorBytes)));
  typedef uint32_t Memory __attribute__((vector_size(kVectorBytes), aligned(4), may_alias));
};
template <>
struct Block<uint64_t> {
  typedef uint64_t Register __attribute__((vector_size(kVectorBytes)));
  typedef uint64_t Memory __attribute__((vector_size(kVectorBytes), aligned(8), may_alias));
};

// The lower or the upper halves of two registers, interleaved.
template <class R, int N>
[[gnu::always_inline]] inline R interleave(R a, R b, int first) {
  R order;
  for (int k = 0; k < N; ++k) order[k] = static_cast<decltype(+order[0])>(first + k / 2 + (k % 2) * N);
  return __builtin_shuffle(a, b, order);
}

template <class Bits>
[[gnu::always_inline]] inline void transpose_block(const Bits* from, int64_t stride, Bits* to,
                                                   int64_t to_stride) {
  using R = typename Block<Bits>::Register;
  using M = typename Block<Bits>::Memory;
  constexpr int N = static_cast<int>(sizeof(R) / sizeof(Bits));
  R a[N], b[N];
#pragma GCC unroll 16
  for (int i = 0; i < N; ++i) a[i] = *reinterpret_cast<const M*>(from + i * stride);
#pragma GCC unroll 4
  for (int stage = 1; stage < N; stage *= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < N / 2; ++i) {
      b[2 * i] = interleave<R, N>(a[i], a[i + N / 2], 0);
      b[2 * i + 1] = interleave<R, N>(a[i], a[i + N / 2], N / 2);
    }
#pragma GCC unroll 16
    for (int i = 0; i < N; ++i) a[i] = b[i];
  }
#pragma GCC unroll 16
  for (int i = 0; i < N; ++i) *reinterpret_cast<M*>(to + i * to_stride) = static_cast<M>(a[i]);
}

template <class Bits>
void transpose(const void* source, int64_t stride, int64_t rows, int64_t columns, void* target,
               int64_t to_stride) {
  constexpr int64_t N = sizeof(typename Block<Bits>::Register) / sizeof(Bits);
  const Bits* from = static_cast<const Bits*>(source);
  Bits* to = static_cast<Bits*>(target);
  const int64_t whole_rows = rows - rows % N, whole_columns = columns - columns % N;
  for (int64_t j = 0; j < whole_columns; j += N)
    for (int64_t i = 0; i < whole_rows; i += N)
      transpose_block(from + i * stride + j, stride, to + j * to_stride + i, to_stride);
  for (int64_t j = 0; j < columns; ++j)
    for (int64_t i = j < whole_columns ? whole_rows : 0; i < rows; ++i)
      to[j * to_stride + i] = from[i * stride + j];
}

}  // namespace

// In the order of ScalarType; bool is read as the byte 0 or 1 that it is.
template <class T>
const ConvertTable<T>& convert_table() {
  static constexpr ConvertTable<T> table{
      {load<double, T>, load<float, T>, load<Half, T>, load<BFloat16, T>, load<Float8_e4m3fn, T>,
       load<Float8_e5m2, T>, load<int64_t, T>, load<int32_t, T>, load<uint8_t, T>, load<uint8_t, T>},
      {store<double, T>, store<float, T>, store<Half, T>, store<BFloat16, T>, store<Float8_e4m3fn, T>,
       store<Float8_e5m2, T>, store<int64_t, T>, store<int32_t, T>, store<uint8_t, T>, store<bool, T>}};
  return table;
}
template const ConvertTable<float>& convert_table<float>();
template const ConvertTable<double>& convert_table<double>();
template const ConvertTable<int64_t>& convert_table<int64_t>();

const MoveTable& move_table() {
  static constexpr MoveTable table{
      {move<uint8_t>, move<uint16_t>, move<uint32_t>, move<uint64_t>},
      {fill<uint8_t>, fill<uint16_t>, fill<uint32_t>, fill<uint64_t>},
      {transpose<uint8_t>, transpose<uint16_t>, transpose<uint32_t>, transpose<uint64_t>},
      {runs<uint8_t>, runs<uint16_t>, runs<uint32_t>, runs<uint64_t>}};
  return table;
}

}  // namespace retrograd::cpu::RG_ISA
