// The order of register tiles in a block of a matrix product, for the kernel files of one instruction-set
// level: see cpu/gemm/levels/gemm_kernels.h, and cpu/gemm/levels/gemm_tiles.h for a tile. Start reading at
// block().
//
// The tiles of a column panel are computed one below the other, the columns of B staying in the first-level
// cache (ColumnPanel), and what a tile fetches while it computes is what the next one takes. Short products
// with a B that stays there as a whole go along the rows of C instead (RowPanels).
#pragma once

#include "cpu/gemm/levels/gemm_tiles.h"

namespace retrograd::inline v0::cpu::RG_ISA {
namespace {

constexpr int64_t kFarElements = int64_t{1} << 17;  // of a packed B, from which on its next panel is fetched
// Bytes of a B that stays in the first-level cache together with A and C.
constexpr int64_t kNearRight = kVectorBytes == 64 ? 32 << 10 : 16 << 10;

// Shares out what is read next among register tiles: each fetches the lines at the same place in some pieces,
// which is as many as there are visits to it.
class Fetch {
 public:
  Fetch(const Ahead& ahead, int64_t visits)
      : data_(static_cast<const char*>(ahead.data)),
        at_(data_),
        end_(data_ + ahead.count * ahead.step),
        step_(ahead.step),
        visits_(visits * ahead.step),
        bytes_(ahead.bytes) {}
  template <class T>
  [[gnu::always_inline]] inline void next(MicroTile<T>& t) {
    t.ahead = {at_, step_, end_};
    at_ += visits_;
    if (at_ < end_) return;
    line_ += kLine;
    at_ = line_ < bytes_ ? data_ + line_ : end_;
  }

 private:
  const char *data_, *at_, *end_;
  int64_t step_, visits_, bytes_;  // in bytes, visits_ how far they lead
  int64_t line_ = 0;
};

// Rows of register tiles: full ones, and what is left. Very few rows at the end would take long: two tiles may
// share theirs.
struct RowCut {
  int64_t full, first = 0, last;
  RowCut(int64_t rows, bool may_share) : full(rows / kRows), last(rows % kRows) {
    if (!may_share || full == 0 || last == 0 || last >= kLeastRows) return;
    --full;
    first = (kRows + last + 1) / 2;
    last = (kRows + last) / 2;
  }
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
      : x_(x), t_(t), fetch_(fetch), j_(j), in_panels_(is_in_panels(x)) {
    t_.a = x_.a;
    t_.keep_a = x_.keep_a;
    if (x_.c) t_.c = x_.c + j;
    if constexpr (GemmTypes<T>::group == 2)
      if (x_.rounded) t_.rounded = x_.rounded + j;
    const Sum<T>* const start = x_.start ? x_.start : x_.accumulate ? x_.c : nullptr;
    if (start) t_.start = start + j;
    t_.c_is_near = false;
    begin_fetches();
  }

  template <Left left>
  void run() {
    if (kFetchesTiles && left == Left::panel)
      t_.next_a = lines(x_.a, 0, (x_.m + kRows - 1) / kRows * x_.a_panel);
    if (!x_.rows) return panels<left, Right::panel>(0);
    full_tile<left, Right::rows>(false);
    t_.b = x_.keep;
    t_.b_row = kVectors * kLanes<T>;
    panels<left, Right::panel>(kRows);
  }

  template <Left left, Right right>
  void panels(int64_t i) {
    const RowCut cut(x_.m - i, !in_panels_ && !x_.keep_a);
    const bool is_wide = t_.columns > kLanes<T>;
    for (int64_t full = cut.full; full > 0; --full)
      if (is_wide)
        full_tile<left, right>(full == 1 && cut.last == 0);
      else
        part_tile<left, right>(kRows, full == 1 && cut.last == 0);
    if (cut.first > 0) part_tile<left, right>(cut.first, false);
    if (cut.last > 0) part_tile<left, right>(cut.last, true);
  }

 private:
  // Without a call: what surrounds the multiplications takes a tenth of a short product.
  template <Left left, Right right>
  [[gnu::always_inline]] inline void full_tile(bool is_last) {
    fetch_.next(t_);
    if (fetches_) look_ahead(kRows, is_last);
    micro<T, kRows, kVectors, left, right>(t_);
    go_down<left>(kRows);
  }
  // With fewer rows or columns.
  template <Left left, Right right>
  void part_tile(int64_t rows, bool is_last) {
    fetch_.next(t_);
    if (fetches_) look_ahead(rows, is_last);
    micro_rows<T, left, right>(t_, rows);
    go_down<left>(rows);
  }

  template <Left left>
  [[gnu::always_inline]] inline void go_down(int64_t rows) {
    t_.a += in_panels_ ? x_.a_panel : rows * x_.a_row;
    if constexpr (left == Left::columns) t_.keep_a += rows * x_.k;
    if (GemmTypes<T>::group == 1 || t_.c) t_.c += rows * t_.c_row;
    if (t_.start) t_.start += rows * t_.start_row;
    if constexpr (GemmTypes<T>::group == 2)
      if (t_.rounded) t_.rounded += rows * t_.rounded_row;
    t_.c_is_near = fetches_;
  }

  // As far as the end of either matrix, of C in these columns.
  void begin_fetches() {
    fetches_ = kFetchesTiles && x_.k >= kFetchSpan && t_.columns > kLanes<T>;
    fetches_a_ = fetches_ && !in_panels_ && j_ == 0 && !x_.a_is_near;
    t_.next_a = {};
    if (!fetches_) return;
    aim_at_c(j_);
    if (!fetches_a_) return;
    const int64_t steps = x_.k / kFetchSteps, step = kFetchSteps * x_.a_column;
    t_.next_a = x_.a_column == 1 ? lines(x_.a, x_.a_row, x_.m * x_.a_row)
                                 : lines(x_.a, step, steps * step + x_.m * x_.a_row);
  }
  void aim_at_c(int64_t column) {
    if constexpr (GemmTypes<T>::group == 2)
      if (x_.rounded) {
        t_.next_c = lines(x_.rounded + column, x_.rounded_row, x_.m * x_.rounded_row);
        return;
      }
    t_.next_c = lines(x_.c + column, x_.c_row, x_.m * x_.c_row);
  }
  // What the next tile reads and writes: after the last row panel the first one, in the next column panel.
  [[gnu::always_inline]] inline void look_ahead(int64_t rows, bool is_last) {
    if (is_last) return look_across();
    t_.next_c.at += rows * t_.next_c.step;
    if (fetches_a_) t_.next_a.at = reinterpret_cast<const char*>(t_.a + rows * x_.a_row);
  }
  void look_across() {
    const int64_t column = j_ + kVectors * kLanes<T>;
    if (fetches_a_) t_.next_a = {};
    if (column < x_.n + x_.n_ahead)
      aim_at_c(column);
    else
      t_.next_c = {};
  }
  template <class S>
  static Lines lines(const S* data, int64_t step, int64_t size) {
    constexpr int64_t kSize = sizeof(S);
    const char* const at = reinterpret_cast<const char*>(data);
    return {at, step * kSize, at + size * kSize};
  }

  const GemmBlock<T>& x_;
  MicroTile<T>& t_;
  Fetch& fetch_;
  const int64_t j_;
  const bool in_panels_;  // A
  bool fetches_ = false, fetches_a_ = false;
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

// A short product with a B that stays in the first-level cache goes along the rows of C. Down a column panel,
// processors fetch what lies below it, which another thread may be about to write: where a line that goes from core
// to core takes long, two threads took twice as long as one.
template <class T>
bool goes_along_rows(const GemmBlock<T>& x) {
  return x.k < kFetchSpan && !x.rows && !x.keep_a && !x.ahead.data &&
         x.n * x.k * static_cast<int64_t>(sizeof(T)) <= kNearRight;
}

template <class T>
class RowPanels {
 public:
  RowPanels(const GemmBlock<T>& x, MicroTile<T>& t)
      : x_(x),
        t_(t),
        in_panels_(is_in_panels(x)),
        start_(x.start        ? x.start
               : x.accumulate ? x.c
                              : nullptr) {}

  template <Left left>
  void run() {
    const RowCut cut(x_.m, !in_panels_);
    for (int64_t full = 0; full < cut.full; ++full) along<left>(full * kRows, kRows);
    if (cut.first > 0) along<left>(cut.full * kRows, cut.first);
    if (cut.last > 0) along<left>(cut.full * kRows + cut.first, cut.last);
  }

 private:
  static constexpr int kColumns = kVectors * kLanes<T>;

  template <Left left>
  void along(int64_t i, int64_t rows) {
    t_.a = x_.a + (in_panels_ ? i / kRows * x_.a_panel : i * x_.a_row);
    t_.b = x_.b;
    t_.c = x_.c + i * x_.c_row;
    if (start_) t_.start = start_ + i * t_.start_row;
    t_.columns = kColumns;
    for (int64_t n = x_.n; n > 0; n -= kColumns) {
      if (n < kColumns) t_.columns = static_cast<int>(n);
      if (n < kColumns && !x_.b_padded)
        micro_rows<T, Left::in_place, Right::part>(t_, rows);
      else if (n < kColumns || rows < kRows)
        micro_rows<T, left, Right::panel>(t_, rows);
      else
        micro<T, kRows, kVectors, left, Right::panel, false>(t_);
      t_.b += x_.b_panel;
      t_.c += kColumns;
      if (start_) t_.start += kColumns;
    }
  }

  const GemmBlock<T>& x_;
  MicroTile<T>& t_;
  const bool in_panels_;  // A
  const Sum<T>* start_;
};

template <class T>
void block(const GemmBlock<T>& x) {
  constexpr int columns = kVectors * kLanes<T>;
  MicroTile<T> t = first_tile(x);
  if constexpr (GemmTypes<T>::group == 1)
    if (goes_along_rows(x)) {
      RowPanels<T> panels(x, t);
      if (is_in_panels(x)) return panels.template run<Left::panel>();
      return x.a_column == 1 ? panels.template run<Left::rows>() : panels.template run<Left::in_place>();
    }
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
