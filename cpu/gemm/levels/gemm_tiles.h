// Register tiles of matrix products, for the kernel files of one instruction-set level: see
// cpu/gemm/levels/gemm_kernels.h, and cpu/gemm/levels/gemm_registers.h for the arithmetic.
//
// The tile of micro() keeps R x V vector registers of sums, V of B and one of A: 12 + 3 of 16 registers, 28 +
// 3 of 32 with AVX-512. Each sum runs over k in order, so an element's bits depend on k and on how the caller
// cuts k, not on its place. While k runs, what is read or written next is fetched, a few lines with every
// kFetchSteps steps: a product would wait for it else, for in a training step it has left the caches. Which
// tiles follow each other is said in cpu/gemm/levels/gemm_panels.h. Start reading at micro().
#pragma once

#include "cpu/gemm/levels/gemm_stores.h"

namespace retrograd::inline v0::cpu::RG_ISA {
namespace {

constexpr int64_t kLongSteps = 64;  // of k, from which on C is fetched ahead
constexpr int64_t kFetchSteps = 4;  // of k, between fetches of what is read next
constexpr int64_t kLine = 64;       // bytes
constexpr int64_t kFetchSpan = 64;  // of k, in which each row of the next tile has its turn
static_assert(kFetchSpan >= kFetchSteps * kRows);
// Also A, and C of the next register tile: those of 64-byte vectors are large, and done soon.
constexpr bool kFetchesTiles = kVectorBytes == 64;
constexpr int64_t kPanelAhead = 4096;  // bytes of a packed A, which comes from the second-level cache

// How A lies: in a packed panel, whose strides are in the code; in place with contiguous rows; in place with
// contiguous columns, and left packed; in place. There five rows share a pointer: an address may add a register times
// 1, 2, 4 or 8.
enum class Left { panel, rows, columns, in_place };
// How B lies: in a panel, or in place with all columns of a panel; its last columns in place, which may be
// the last of the memory; in place, and left packed.
enum class Right { panel, part, rows };

template <class T, Right lie, int V>
[[gnu::always_inline]] inline void load_right(const MicroTile<T>& t, const Packed<T>* b,
                                              Register<T> (&right)[V]) {
  constexpr int L = kLanes<T>;
#pragma GCC unroll 4
  for (int v = 0; v < V; ++v)
    if constexpr (lie == Right::part)
      right[v] =
          v < V - 1 ? load<T>(b + v * L) : native_load_part(b + v * L, t.columns - v * L, Register<T>{});
    else
      right[v] = load<T>(b + v * L);
}

template <int R, int V, class S>
[[gnu::always_inline]] inline void fetch_rows(const S* rows, int64_t step, int lanes) {
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) __builtin_prefetch(rows + i * step + v * lanes, 1);
}

template <class T, int R, int V>
[[gnu::always_inline]] inline void fetch_c(const MicroTile<T>& t) {
  if (t.k < kLongSteps) return;
  if constexpr (GemmTypes<T>::group == 2)
    if (t.rounded) return fetch_rows<R, V>(t.rounded, t.rounded_row, kLanes<T>);
  fetch_rows<R, V>(t.c, t.c_row, kLanes<T>);
}

// What a full register tile fetches while k runs: with each call, for kFetchSteps steps, a line of the B that is read
// next, as many steps of A, where it lies in place from the next tile on, and in the last whole span rows of C from
// the next tile's on. Contiguous rows of A are gone through once in kFetchSpan steps, some lines of a row with each
// call; of a packed A comes what is kPanelAhead ahead, after its end the beginning. Nothing is fetched that is near:
// of an A in the second-level cache it costs 4 percent. Where rows of C do not begin with a line of the cache, the
// column panel before has fetched the first line of a row: hence the last byte of each vector.
template <class T, Left left_lie>
class Fetches {
 public:
  explicit Fetches(const MicroTile<T>& t)
      : b_(t.ahead),
        all_a_(t.next_a),
        a_begin_(left_lie == Left::panel ? reinterpret_cast<const char*>(t.a) + kPanelAhead : all_a_.at),
        next_c_(t.next_c),
        a_line_(left_lie == Left::rows || left_lie == Left::panel ? kLine : t.a_column * kSize) {
    a_.step = left_lie == Left::panel ? kFetchSteps * kRows * kSize : all_a_.step;
  }

  // `left`: steps of k.
  [[gnu::always_inline]] void begin_span(int64_t left) {
    c_ = left >= kFetchSpan && left < 2 * kFetchSpan ? next_c_ : Lines{};
    if (left_lie == Left::panel && a_begin_ >= all_a_.end) a_begin_ -= all_a_.end - all_a_.at;
    a_.at = a_begin_;
    a_.end = all_a_.end;
    if constexpr (left_lie == Left::rows) {
      a_begin_ += kLines * kLine;
      all_a_.end += kLines * kLine;
    } else {
      a_begin_ += kFetchSpan / kFetchSteps * a_.step;
    }
  }
  [[gnu::always_inline]] void next() {
    if (b_.at < b_.end) {
      __builtin_prefetch(b_.at, 0, 2);
      b_.at += b_.step;
    }
    if constexpr (kFetchesTiles) {
      if (a_.at < a_.end) {
#pragma GCC unroll 8
        for (int64_t i = 0; i < kLines; ++i) __builtin_prefetch(a_.at + i * a_line_);
        a_.at += a_.step;
      }
      if (c_.at < c_.end) {
#pragma GCC unroll 2
        for (int v = 1; v <= kVectors; ++v) __builtin_prefetch(c_.at + v * kVectorBytes - 1, 1);
        c_.at += c_.step;
      }
    }
  }

 private:
  static constexpr int64_t kSize = sizeof(Packed<T>),
                           kLines = left_lie == Left::panel
                                        ? (kFetchSteps * kRows * kSize + kLine - 1) / kLine
                                    : left_lie == Left::rows ? kFetchSpan * kSize / kLine
                                                             : kFetchSteps;

  Lines b_;
  Lines all_a_;          // as far as the next span goes
  const char* a_begin_;  // in the next span
  const Lines next_c_;
  Lines a_{}, c_{};  // of this span
  const int64_t a_line_;
};

// R neighbours of a packed panel.
template <class T, int R>
[[gnu::always_inline]] inline void copy_step(const Packed<T>* from, Packed<T>* to) {
  constexpr int L = kLanes<T>;
#pragma GCC unroll 4
  for (int i = 0; i < R; i += L)
    native_store_part(to + i, R - i, native_load_part(from + i, R - i, Register<T>{}));
}

template <class T, int R, int V, Left left_lie, Right right_lie, bool kFetches = true>
[[gnu::always_inline]] inline void micro(const MicroTile<T>& t) {
  constexpr int kShared = 5, L = kLanes<T>;
  constexpr bool InPanel = left_lie == Left::panel || left_lie == Left::columns;
  Register<T> sum[R][V] = {};
  const Packed<T>* a[(R + kShared - 1) / kShared];
  for (int i = 0; i < R; i += kShared) a[i / kShared] = t.a + i * (InPanel ? 1 : t.a_row);
  const int64_t a_row = InPanel ? 1 : t.a_row, a_column = left_lie == Left::panel  ? kRows
                                                          : left_lie == Left::rows ? 1
                                                                                   : t.a_column;
  [[maybe_unused]] Packed<T>* keep_a = t.keep_a;
  [[maybe_unused]] const Packed<T>* b = t.b;
  [[maybe_unused]] const int64_t b_row = t.b_row;
  [[maybe_unused]] const T* rows = t.rows;
  [[maybe_unused]] Packed<T>* keep = t.keep;
  const auto step = [&]() __attribute__((always_inline)) {
    Register<T> right[V];
    if constexpr (left_lie == Left::columns) {
      copy_step<T, R>(a[0], keep_a);
      keep_a += kRows;
    }
    if constexpr (right_lie == Right::rows) {
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) {
        right[v] = pack_row<T>(rows, t.rows_step, v);
        store<T>(keep + v * L, right[v]);
      }
      rows += GemmTypes<T>::group * t.rows_step;
      keep += V * L;
    } else {
      load_right<T, right_lie, V>(t, b, right);
      b += b_row;
    }
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) {
      const Register<T> left = spread<T>(a[i / kShared] + i % kShared * a_row);
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) sum[i][v] = multiply_add<T>(left, right[v], sum[i][v]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < R; i += kShared) a[i / kShared] += a_column;
  };
  const auto some_steps = [&]() __attribute__((always_inline)) {
#pragma GCC unroll 4
    for (int64_t i = 0; i < kFetchSteps; ++i) step();
  };
  int64_t l = t.k;
  if constexpr (!kFetches) {
    for (; l >= kFetchSteps; l -= kFetchSteps) some_steps();
  } else {
    if (!t.c_is_near) fetch_c<T, R, V>(t);
    if constexpr (R == kRows && V == kVectors) {
      Fetches<T, left_lie> fetches(t);
      while (l >= kFetchSteps) {
        fetches.begin_span(l);
        const int64_t calls = (l < kFetchSpan ? l : kFetchSpan) / kFetchSteps;
        l -= calls * kFetchSteps;
        for (int64_t call = 0; call < calls; ++call) {
          fetches.next();
          some_steps();
        }
      }
    }
  }
  for (; l > 0; --l) step();
  write<T, R, V>(t, sum);
}

template <class T, int R, int V, Left left, Right right>
[[gnu::noinline]] void micro_call(const MicroTile<T>& t) {
  micro<T, R, V, left, right>(t);
}

// A tile of some rows, by a call.
template <class T, Left left, Right right, int R = kRows>
void micro_rows(const MicroTile<T>& t, int64_t rows) {
  if (rows == R)
    return t.columns > kLanes<T> ? micro_call<T, R, kVectors, left, right>(t)
                                 : micro_call<T, R, 1, left, right>(t);
  if constexpr (R > 1) micro_rows<T, left, right, R - 1>(t, rows);
}

}  // namespace
}  // namespace retrograd::cpu::RG_ISA
