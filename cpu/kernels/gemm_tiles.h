// Register tiles of matrix products, for the kernel files of one instruction-set level: see
// cpu/kernels/gemm_kernels.h, and cpu/kernels/gemm_registers.h for the arithmetic.
//
// The tile of micro() keeps R x V vector registers of sums, V of B and one of A: 12 + 3 of 16 registers, 28 +
// 3 of 32 with AVX-512. Each sum runs over k in order, so an element's bits depend on k and on how the caller
// cuts k, not on its place. While k runs, what is read or written next is fetched, a few lines with every
// kFetchSteps steps: a product would wait for it else, for in a training step it has left the caches. block() runs
// the tiles of a column panel one after the other, the columns of B staying in the first-level cache. Start
// reading at block().
#pragma once

#include "cpu/kernels/gemm_stores.h"

namespace retrograd::cpu::RG_ISA {
namespace {

constexpr int64_t kLongSteps = 64;  // of k, from which on C is fetched ahead
constexpr int64_t kFetchSteps = 4;  // of k, between fetches of what is read next
constexpr int64_t kLine = 64;       // bytes
constexpr int64_t kFetchSpan = 64;  // of k, in which each row of the next tile has its turn
static_assert(kFetchSpan >= kFetchSteps * kRows);
// Also A, and C of the next register tile: those of 64-byte vectors are large, and done soon.
constexpr bool kFetchesTiles = kVectorBytes == 64;
constexpr int64_t kPanelAhead = 4096;  // bytes of a packed A, which comes from the second-level cache
constexpr int64_t kFarElements = int64_t{1} << 17;  // of a packed B, from which on its next panel is fetched

// How A lies: in a packed panel, whose strides are in the code; in place with contiguous rows; in place with contiguous
// columns, and left packed; in place. There five rows share a pointer: an address may add a register times 1, 2, 4 or 8.
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
// next, as many steps of A, of the next tile where it lies in place, and in the first span a row of the next tile's C.
// Contiguous rows of A are gone through once in kFetchSpan steps, some lines of a row with each call; of a packed A comes
// what is kPanelAhead ahead, behind its end the beginning. Nothing is fetched that is near: of an A in the second-level
// cache it costs 4 percent. Where rows of C do not begin with a line of the cache, the column panel before has fetched the
// first line of a row: hence the last byte of each vector.
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
    c_ = left < 2 * kFetchSpan ? next_c_ : Lines{};
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

template <class T, int R, int V, Left left_lie, Right right_lie>
void micro(const MicroTile<T>& t) {
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
  if (!t.c_is_near) fetch_c<T, R, V>(t);
  int64_t l = t.k;
  if constexpr (R == kRows && V == kVectors) {
    Fetches<T, left_lie> fetches(t);
    while (l >= kFetchSteps) {
      fetches.begin_span(l);
      const int64_t calls = (l < kFetchSpan ? l : kFetchSpan) / kFetchSteps;
      l -= calls * kFetchSteps;
      for (int64_t call = 0; call < calls; ++call) {
        fetches.next();
#pragma GCC unroll 4
        for (int64_t i = 0; i < kFetchSteps; ++i) step();
      }
    }
  }
  for (; l > 0; --l) step();
  write<T, R, V>(t, sum);
}

template <class T, Left left, Right right, int R = kRows>
void micro_rows(const MicroTile<T>& t, int64_t rows) {
  if (rows == R)
    return t.columns > kLanes<T> ? micro<T, R, kVectors, left, right>(t) : micro<T, R, 1, left, right>(t);
  if constexpr (R > 1) micro_rows<T, left, right, R - 1>(t, rows);
}

// Shares out what is read next among register tiles: each fetches the lines at the same place in some pieces,
// which is as many as there are visits to it.
class Fetch {
 public:
  Fetch(const Ahead& ahead, int64_t visits) : x_(ahead), visits_(visits) {}
  template <class T>
  void next(MicroTile<T>& t) {
    t.ahead = {};
    if (at_ < x_.bytes && x_.count > 0) {
      const char* const first = static_cast<const char*>(x_.data) + at_;
      t.ahead = {first + piece_ * x_.step, x_.step, first + x_.count * x_.step};
    }
    piece_ += visits_;
    if (piece_ < x_.count) return;
    piece_ = 0;
    at_ += kLine;
  }

 private:
  Ahead x_;
  int64_t visits_;
  int64_t piece_ = 0, at_ = 0;
};

// Whether A is packed.
template <class T>
bool is_in_panels(const GemmBlock<T>& x) {
  return x.a_row == 1 && x.a_column == kRows;
}

// The row panels of a column panel, beginning at column j.
template <class T>
class ColumnPanel {
 public:
  ColumnPanel(const GemmBlock<T>& x, MicroTile<T>& t, Fetch& fetch, int64_t j)
      : x_(x),
        t_(t),
        fetch_(fetch),
        j_(j),
        in_panels_(is_in_panels(x)),
        fetches_a_(!in_panels_ && j == 0 && !x.a_is_near && x.k >= kFetchSpan),
        start_(x.start        ? x.start
               : x.accumulate ? x.c
                              : nullptr) {
    if (kFetchesTiles && in_panels_)
      t_.next_a = lines(x_.a, 0, (x_.m + kRows - 1) / kRows * x_.a_panel * kPackedSize);
  }

  template <Left left>
  void run() {
    if (x_.rows) {
      place(0, kRows);
      micro<T, kRows, kVectors, left, Right::rows>(t_);
      t_.b = x_.keep;
      t_.b_row = kVectors * kLanes<T>;
      return panels<left, Right::panel>(kRows);
    }
    panels<left, Right::panel>(0);
  }

  template <Left left, Right right>
  void panels(int64_t i) {
    for (int64_t rows = 0; i < x_.m; i += rows) {
      rows = rows_at(i);
      place(i, rows);
      micro_rows<T, left, right>(t_, rows);
    }
  }

 private:
  // Very few rows at the end would take long: where A lies in place, the last two register tiles share theirs.
  int64_t rows_at(int64_t i) const {
    const int64_t left = x_.m - i;
    if (left <= kRows) return left;
    return in_panels_ || x_.keep_a || left >= kRows + kLeastRows ? kRows : (left + 1) / 2;
  }
  void place(int64_t i, int64_t rows) {
    t_.a = x_.a + (in_panels_ ? i / kRows * x_.a_panel : i * x_.a_row);
    if (x_.keep_a) t_.keep_a = x_.keep_a + i * x_.k;
    if (x_.c) t_.c = x_.c + i * x_.c_row + j_;
    if constexpr (GemmTypes<T>::group == 2)
      if (x_.rounded) t_.rounded = x_.rounded + i * x_.rounded_row + j_;
    if (start_) t_.start = start_ + i * t_.start_row + j_;
    fetch_.next(t_);
    if (kFetchesTiles && t_.k >= kFetchSpan) place_next(i, rows);
  }

  // Behind the last row panel the first one, in the next column panel.
  void place_next(int64_t i, int64_t rows) {
    const bool is_last = i + rows >= x_.m;
    const int64_t row = is_last ? 0 : i + rows, column = is_last ? j_ + kVectors * kLanes<T> : j_,
                  next_rows = column < x_.n + x_.n_ahead ? rows_at(row) : 0;
    if (fetches_a_) t_.next_a = is_last ? Lines{} : next_a(row, next_rows);
    if (x_.c) t_.next_c = next_c(x_.c, x_.c_row, row, column, next_rows);
    if constexpr (GemmTypes<T>::group == 2)
      if (x_.rounded) t_.next_c = next_c(x_.rounded, x_.rounded_row, row, column, next_rows);
    t_.c_is_near = i > 0 && t_.columns > kLanes<T>;
  }
  // Of an A that is read where it lies.
  Lines next_a(int64_t row, int64_t rows) const {
    const Packed<T>* const a = x_.a + row * x_.a_row;
    if (x_.a_column == 1) return lines(a, x_.a_row * kPackedSize, rows * x_.a_row * kPackedSize);
    const int64_t step = kFetchSteps * x_.a_column * kPackedSize;
    return lines(a, step, x_.k / kFetchSteps * step);
  }
  template <class S>
  static Lines next_c(const S* c, int64_t c_row, int64_t row, int64_t column, int64_t rows) {
    const int64_t step = c_row * static_cast<int64_t>(sizeof(S));
    return lines(c + row * c_row + column, step, rows * step);
  }
  static Lines lines(const void* data, int64_t step, int64_t bytes) {
    const char* const at = static_cast<const char*>(data);
    return {at, step, at + bytes};
  }

  static constexpr int64_t kPackedSize = sizeof(Packed<T>);
  const GemmBlock<T>& x_;
  MicroTile<T>& t_;
  Fetch& fetch_;
  const int64_t j_;
  const bool in_panels_, fetches_a_;  // A
  const Sum<T>* start_;
};

// In one piece: memory that is cleared before takes a good part of a small product.
template <class T>
[[gnu::always_inline]] inline MicroTile<T> first_tile(const GemmBlock<T>& x) {
  return {.k = x.k,
          .a = x.a,
          .b = x.b,
          .a_row = x.a_row,
          .a_column = x.a_column,
          .b_row = x.b_row,
          .rows = x.rows,
          .rows_step = x.rows_step,
          .keep_a = nullptr,
          .keep = x.keep,
          .c = x.c,
          .c_row = x.c_row,
          .start = nullptr,
          .start_row = x.start ? x.start_row : x.c_row,
          .rounded = nullptr,
          .rounded_row = x.rounded_row,
          .alpha = x.alpha,
          .columns = kVectors * kLanes<T>,
          .ahead = {},
          .next_a = {},
          .next_c = {},
          .c_is_near = false};
}

template <class T>
void block(const GemmBlock<T>& x) {
  constexpr int columns = kVectors * kLanes<T>;
  MicroTile<T> t = first_tile(x);
  const int64_t visits = x.k / kFetchSteps,
                panel_lines = x.k * columns * static_cast<int64_t>(sizeof(Packed<T>)) / kLine;
  const bool is_far = x.b_padded && !x.ahead.data && x.n * x.k >= kFarElements;
  Fetch fetch(x.ahead, visits);
  for (int64_t j = 0; j < x.n; j += columns) {
    t.b = x.b + j / columns * x.b_panel;
    if (is_far && x.n - j > columns) fetch = Fetch({t.b + x.b_panel, panel_lines, kLine, kLine}, visits);
    t.rows = x.rows + j;
    if (x.n - j < columns) t.columns = static_cast<int>(x.n - j);
    ColumnPanel<T> panel(x, t, fetch, j);
    if constexpr (GemmTypes<T>::group == 1)
      if (t.columns < columns && !x.b_padded) {
        panel.template panels<Left::in_place, Right::part>(0);
        continue;
      }
    if constexpr (kKeepsColumns && GemmTypes<T>::group == 1)
      if (x.keep_a) {
        panel.template run<Left::columns>();
        continue;
      }
    if (is_in_panels(x))
      panel.template run<Left::panel>();
    else
      x.a_column == 1 ? panel.template run<Left::rows>() : panel.template run<Left::in_place>();
  }
}

}  // namespace
}  // namespace retrograd::cpu::RG_ISA
