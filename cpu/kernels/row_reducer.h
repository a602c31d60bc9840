// RowReducer: a tensor reduced over some of its dims, for any dtype and strides.
//
// Chunks of kChunk elements of a row give Partials (cpu/kernels/levels/reduce_rows.h), rows that lie side by
// side together; the Partials of a row are merged in order and handed to a `finish` that writes the results.
// Order and cuts follow from sizes alone, whatever the number of threads. Start reading at RowReducer::run.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>

#include "cpu/kernels/levels/reduce_rows.h"
#include "cpu/kernels/row_access.h"
#include "cpu/parallel.h"

namespace retrograd::inline v0::cpu {

/// f(std::integral_constant<Reduction, kind>) for a kind that is known when the program runs.
template <class F>
decltype(auto) with_kind(Reduction kind, const F& f) {
  using enum Reduction;
  const auto of = [&]<Reduction k>() { return f(std::integral_constant<Reduction, k>()); };
  switch (kind) {
    case sum: return of.template operator()<sum>();
    case abs_sum: return of.template operator()<abs_sum>();
    case square_sum: return of.template operator()<square_sum>();
    case power_sum: return of.template operator()<power_sum>();
    case prod: return of.template operator()<prod>();
    case max: return of.template operator()<max>();
    case min: return of.template operator()<min>();
    case abs_max: return of.template operator()<abs_max>();
    case abs_min: return of.template operator()<abs_min>();
    case nonzero: return of.template operator()<nonzero>();
    case moments: return of.template operator()<moments>();
    case logsumexp: return of.template operator()<logsumexp>();
    case argmax: return of.template operator()<argmax>();
    case argmin: break;
  }
  return of.template operator()<argmin>();
}

template <Reduction kind, class V>
inline constexpr bool kIsOf = std::is_same_v<V, double> ||
                              (kind != Reduction::moments && kind != Reduction::logsumexp &&
                               kind != Reduction::square_sum && kind != Reduction::power_sum);

/// The result for no elements.
template <class V>
Partial<V> nothing(Reduction kind) {
  return with_kind(kind, [](auto k) {
    if constexpr (kIsOf<k(), V>) return ops::nothing<k(), Partial<V>>();
    return Partial<V>{};
  });
}

/// Adds to `a` what was found in the elements after it; p is the exponent of square_sum and power_sum.
template <class V>
void merge(Reduction kind, double p, Partial<V>& a, const Partial<V>& b) {
  with_kind(kind, [&](auto k) {
    if constexpr (kIsOf<k(), V>) ops::merge<k()>(a, b, p);
  });
}

/// A reference to a function that takes the Partials of rows first, first + 1 and so on, at most kMostRows of them, on
/// any thread. Without the function's type: the loops are compiled once for each T.
template <class V>
class Finish {
 public:
  template <class F>
  Finish(const F& f)
      : function_(&f), call_([](const void* function, int64_t first, std::span<const Partial<V>> found) {
          (*static_cast<const F*>(function))(first, found);
        }) {}
  void operator()(int64_t first, std::span<const Partial<V>> found) const { call_(function_, first, found); }

 private:
  const void* function_;
  void (*call_)(const void*, int64_t, std::span<const Partial<V>>);
};

// V is the accumulation type: double for floating operands, int64_t for the others.
template <class T>
class RowReducer {
 public:
  using V = typename Accumulated<T>::Type;

  RowReducer(const TensorImpl& x, const IntList& dims, Reduction kind, double p)
      : rows_(x, dims), kind_(kind), p_(p) {}

  void run(Finish<V> finish) const {
    const int64_t n = rows_.length(), count = rows_.count();
    if (n > kChunk && count > 0 && count < 64) return run_by_chunk(finish);
    const bool is_small = n * count <= kRowGrain;
    const RowTiles<T> tiles = make_tiles(is_small ? 1 : ceil_div(count, rows_.grain()));
    if (measuring()) return;
    const auto run = [&](int64_t begin, int64_t end) {
      typename RowTiles<T>::Mine tile(tiles);
      run_rows(begin, end, tile[0], finish);
    };
    if (is_small) return run(0, count);
    parallel_range(count, rows_.grain(), run);
  }

 private:
  // For a chunk of rows side by side that are not read where they lie.
  RowTiles<T> make_tiles(int64_t chunks) const {
    const int64_t most = rows_.most_neighbours(kMostRows);
    return {most > 1 && !rows_.template is_across<T>() ? most : 0, std::min(kChunk, rows_.length()), chunks};
  }

  // The chunk that begins at an element, of `count` rows side by side.
  void chunk(int64_t row, int64_t count, int64_t begin, T* rows_tile, Partial<V>* found) const {
    const int64_t end = std::min(begin + kChunk, rows_.length()), n = end - begin;
    std::fill_n(found, count, Partial<V>{});
    if (count == 1 && comes_in_pieces()) return pieces(row, begin, end, found);
    if (count == 1) {
      T tile[kChunk];
      const T* x = rows_.read(row, begin, end, tile);
      reduce_table<T>().reduce(x, n, kind_, p_, found);
    } else {
      int64_t stride;
      const T* x = rows_.read_across(row, count, begin, end, rows_tile, &stride);
      reduce_table<T>().reduce_columns(x, n, stride, count, kind_, p_, found);
    }
    for (int64_t k = 0; k < count; ++k) found[k].index += begin;
  }

  // A row that lies in place in long runs need not be copied for what can be found piece by piece.
  bool comes_in_pieces() const {
    if constexpr (std::is_same_v<T, int64_t>) return false;
    const Layout& along = rows_.along();
    const int last = along.rank - 1;
    return (kind_ == Reduction::sum || kind_ == Reduction::max || kind_ == Reduction::min) && last > 0 &&
           rows_.template lies_in_runs<T>() && along.size[last] >= 4 * kPieceLanes;
  }
  void pieces(int64_t row, int64_t begin, int64_t end, Partial<V>* found) const {
    if constexpr (!std::is_same_v<T, int64_t>) {
      T lanes[kPieceLanes], joint[kPieceLanes];  // the end of a run and the beginning of the next one
      int64_t joined = 0;
      const ReduceTable<T>& table = reduce_table<T>();
      const T* const base = rows_.template first<T>(row);
      const auto join = [&](const T* x, int64_t n) {
        std::copy_n(x, n, joint + joined);
        joined += n;
      };
      table.begin_pieces(kind_, lanes);
      rows_.along().for_runs(begin, end, [&](int64_t offset, int64_t, int64_t n, int64_t) {
        const T* const x = base + offset;
        const int64_t first = joined > 0 ? std::min(n, kPieceLanes - joined) : 0;
        join(x, first);
        if (joined == kPieceLanes) {
          table.add_piece(joint, kPieceLanes, kind_, lanes);
          joined = 0;
        }
        const int64_t rest = (n - first) % kPieceLanes;
        table.add_piece(x + first, n - first - rest, kind_, lanes);
        join(x + n - rest, rest);
      });
      table.add_piece(joint, joined, kind_, lanes);
      table.end_pieces(lanes, kind_, found);
      found->count = end - begin;
    }
  }

  // Rows that follow each other are reduced by one call.
  bool are_short() const {
    return rows_.length() <= kChunk && rows_.length() > 0 && rows_.template lie_behind<T>();
  }

  void run_short(int64_t begin, int64_t end, Finish<V> finish) const {
    Partial<V> found[kMostRows];
    const int64_t stride = rows_.kept().stride[0];
    for (int64_t first = begin; first < end; first += kMostRows) {
      const int64_t count = std::min<int64_t>(kMostRows, end - first);
      T* const unused = nullptr;
      std::fill_n(found, count, Partial<V>{});
      reduce_table<T>().reduce_rows(rows_.read(first, unused), count, stride, rows_.length(), kind_, p_,
                                    found);
      finish(first, std::span<const Partial<V>>(found, static_cast<size_t>(count)));
    }
  }

  void run_rows(int64_t begin, int64_t end, T* tile, Finish<V> finish) const {
    if (are_short()) return run_short(begin, end, finish);
    constexpr int64_t kRun = kMostRows;
    Partial<V> found[kRun], more[kRun];
    for (int64_t first = begin; first < end;) {
      int64_t count = 0;  // rows of this run so far
      while (count < kRun && first + count < end) {
        const int64_t row = first + count,
                      rows = rows_.neighbours(row, std::min(end, first + kRun), kMostRows);
        if (rows_.length() == 0) std::fill_n(found + count, rows, nothing<V>(kind_));
        for (int64_t at = 0; at < rows_.length(); at += kChunk) {
          chunk(row, rows, at, tile, at ? more : found + count);
          for (int64_t k = 0; at && k < rows; ++k) merge(kind_, p_, found[count + k], more[k]);
        }
        count += rows;
      }
      finish(first, std::span<const Partial<V>>(found, static_cast<size_t>(count)));
      first += count;
    }
  }

  // Few long rows: their chunks are spread over the threads. Long runs come faster from memory; chunks in a run of
  // one thread, and how many runs are enough for any number of threads.
  static constexpr int64_t kLongRun = 64, kManyRuns = 64;
  void run_by_chunk(Finish<V> finish) const {
    const int64_t chunks = (rows_.length() + kChunk - 1) / kChunk, count = rows_.count();
    const int64_t grain = std::max<int64_t>({1, 8 / count, std::min(kLongRun / count, chunks / kManyRuns)});
    const Scratch<Partial<V>> found(count * chunks);  // of a chunk, row by row
    const RowTiles<T> tiles = make_tiles(ceil_div(chunks, grain));
    if (measuring()) return;
    parallel_range(chunks, grain, [&](int64_t begin, int64_t end) {
      typename RowTiles<T>::Mine tile(tiles);
      for (int64_t i = begin; i < end; ++i)
        for (int64_t row = 0, rows = 0; row < count; row += rows) {
          rows = rows_.neighbours(row, count, kMostRows);
          chunk(row, rows, i * kChunk, tile[0], &found[i * count + row]);
        }
    });
    for (int64_t row = 0; row < count; ++row) {
      Partial<V>* first = &found[row];
      for (int64_t i = 1; i < chunks; ++i) merge(kind_, p_, *first, first[i * count]);
      finish(row, std::span<const Partial<V>>(first, 1));
    }
  }

  Rows rows_;
  Reduction kind_;
  double p_;
};

}  // namespace retrograd::cpu
