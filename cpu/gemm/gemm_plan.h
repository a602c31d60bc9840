// How one matrix product is cut and which operands are packed: the decisions of cpu/gemm/gemm.cc.
// cpu/gemm/gemm_slab.h carries them out.
//
// C is cut into tiles, the chunks of a parallel loop. Within a tile k runs in blocks of about equal depth, at most
// kDepth, so that a column panel of B stays in the first-level cache while the row panels of the tile stream from the
// second-level cache. An operand is read
// - where it lies, when it lies well or is used little;
// - B of contiguous rows: where it lies by the first row panel of a tile, which leaves it packed for the
//   others; A of contiguous columns so by the first column panel, with AVX-512;
// - from panels that every tile packs for itself, when few tiles use a panel: they never leave the caches of a
//   core;
// - else from panels that are packed before the tiles, by a parallel loop of its own.
//
// Tiles are of about equal size: pieces of columns are whole column panels, pieces of rows begin at any row. With one
// thread they are as large as the caches allow; the number of threads does not change results: blocks of k depend on
// k alone. However a product is cut across, each element of C is the sum over k in the same blocks and the same
// order.
#pragma once

#include <algorithm>
#include <cstdlib>

#include "cpu/division.h"
#include "cpu/gemm/gemm.h"
#include "cpu/gemm/levels/gemm_kernels.h"
#include "cpu/parallel.h"

namespace retrograd::inline v0::cpu {

namespace gemm_detail {

inline constexpr int64_t kDepth = 256;         // of one block of k, in packed elements
inline constexpr int64_t kDepthStep = 16;      // the depth of a block is a multiple of it, for the packing
inline constexpr int64_t kMostRowPanels = 44;  // of a tile, if all rows are one piece because B is far away
inline constexpr int64_t kFarB = 8 << 20;      // bytes from which on B is far away
inline constexpr double kTileWork = 1 << 17;   // multiplications of a tile, at least
inline constexpr int64_t kTilesAThread = 4;    // at most, where they could be larger
inline constexpr int64_t kSmallBytes = 32 << 10;  // an operand of this size stays in the first-level cache
// Time to pack a panel of A before its use or on the way, or to read it in place for the first time, to pack a panel
// of B on the way, and the loss of threads to others in the time of a tile.
inline constexpr double kTimePacked = 0.5, kTimeKept = 0.2, kTimeInPlace = 0.1, kTimeOnTheWay = 0.5,
                        kTimeUneven = 0.04;
inline constexpr double kRowsPacked =
    7;  // of a register tile, in the time that it takes to pack a panel of B
inline constexpr double kHandOut = 1 << 14;  // multiplications in the time needed to hand out a tile
inline constexpr int64_t kTilesOnTheWay = 4, kTilesWithin = 2;  // at most, that pack the same panel of B
inline constexpr int64_t kPackedColumns = 64;                   // of C, beyond which A may be packed
inline constexpr int64_t kFarRow = 4096;  // bytes from which on rows of A are slow to read in place
inline constexpr int64_t kPage = 4096;

template <class T>
using Packed = typename GemmTypes<T>::Packed;
template <class T>
inline constexpr int64_t kGroup = GemmTypes<T>::group;

/// Elements of a block of k > 0, except the last one.
template <class T>
int64_t block_depth(int64_t k) {
  const int64_t most = kDepth * kGroup<T>, step = kDepthStep * kGroup<T>;
  if (k <= most)
    return ceil_div(k, step) * step;  // without a division, for the many small products of attention
  return ceil_div(ceil_div(k, ceil_div(k, most)), step) * step;
}

template <class T>
MatrixView<T> transposed(MatrixView<T> x) {
  return {x.data, x.column, x.row};
}

/// `size` rows or panels in `count` pieces that differ by at most one.
struct Pieces {
  int64_t size, count;
  int64_t begin(int64_t piece) const { return size * piece / count; }
  int64_t largest() const { return ceil_div(size, count); }
};

enum class Packing : uint8_t { none, on_the_way, within, before };

template <class T>
struct Plan {
  const GemmKernels<T>& kernel = gemm_kernels<T>();
  Pieces rows, columns;  // of C, in rows and in column panels
  int64_t depth;         // of a block of k, in elements of T
  Packing a = Packing::none, b = Packing::none;

  /// For a product whose sizes are not zero.
  explicit Plan(const Gemm<T>& g)
      : rows{g.m, 1},
        columns{ceil_div(g.n, kernel.columns), 1},
        depth(block_depth<T>(g.k)),
        groups_(ceil_div(g.k, kGroup<T>)) {
    b = packing_of_b(g);
    if (worth_packing_a(g)) a = keeps_columns(g) ? Packing::on_the_way : Packing::within;
    rows.count = ceil_div(g.m, rows_of(kernel.row_panels));
    if (g.m <= rows_of(kMostRowPanels) && bytes(g.n) >= kFarB / g.k) rows.count = 1;
    if (g.k > depth) columns.count = ceil_div(columns.size, kernel.column_panels);
    cut(loop_threads());
    if (b == Packing::on_the_way && rows.size / rows.count <= kernel.rows)
      b = kGroup<T> > 1 ? Packing::within : Packing::none;
    if (is_b_shared()) b = Packing::before;
    if (packs_a_within() && columns.count > loop_threads()) a = Packing::before;
  }

  int64_t tiles() const { return rows.count * columns.count; }
  /// Whether each tile packs its part of A.
  bool packs_a_within() const { return a == Packing::within || a == Packing::on_the_way; }
  /// Of a piece of rows, counted from its first row; the largest has so many.
  int64_t row_panels() const { return ceil_div(rows.largest(), kernel.rows); }

 private:
  int64_t groups_;  // steps of k

  // Of a tile with so many row panels, if blocks of k were as deep as they may be.
  int64_t rows_of(int64_t panels) const { return panels * kernel.rows * kDepth * kGroup<T> / depth; }
  static int64_t bytes(int64_t n) { return std::abs(n) * static_cast<int64_t>(sizeof(T)); }
  static bool is_small(int64_t rows, int64_t columns) {
    return rows <= kSmallBytes && columns <= kSmallBytes && bytes(rows * columns) <= kSmallBytes;
  }

  // Operands that must be grouped are always packed.
  Packing packing_of_b(const Gemm<T>& g) const {
    if (kGroup < T >> 1 || g.b.column != 1) return Packing::within;
    return is_small(g.k, g.n) || g.m <= kernel.rows ? Packing::none : Packing::on_the_way;
  }
  bool worth_packing_a(const Gemm<T>& g) const {
    const bool far =
        g.a.column == 1 ? bytes(g.a.row) * kGroup<T> >= kFarRow : bytes(g.a.column) >= kernel.far_step;
    if (kGroup < T >> 1 && (g.a.column != 1 || g.a.row % kGroup<T> != 0 || g.k % kGroup<T> != 0)) return true;
    return g.n > kPackedColumns && far && !is_small(g.m, g.k);
  }

  // A register tile reads every step of its rows of A: not suitable if each is on another page.
  bool keeps_columns(const Gemm<T>& g) const {
    return kernel.keeps_columns && g.a.row == 1 && bytes(g.a.column) < kPage;
  }

  // Whether enough tiles use a panel of B that it is packed before them.
  bool is_b_shared() const {
    if (b == Packing::within) return rows.count > (loop_threads() == 1 ? 1 : kTilesWithin);
    return b == Packing::on_the_way && rows.count > kTilesOnTheWay;
  }

  // For several threads: chooses the numbers of pieces for which the last thread finishes earliest, in time units of
  // a row panel times a column panel.
  void cut(int64_t threads) {
    const double work = static_cast<double>(rows.size) * static_cast<double>(columns.size * kernel.columns) *
                        static_cast<double>(groups_ * kGroup<T>);
    if (threads == 1 || work < 2 * kTileWork) return;
    const int64_t most = static_cast<int64_t>(
        std::min(work / kTileWork, static_cast<double>(std::max(kTilesAThread * threads, 2 * tiles()))));
    Pieces best_rows = rows, best_columns = columns;
    const Costs costs = side_costs();
    double best = time(rows, columns, threads, costs);
    const int64_t most_rows = ceil_div(rows.size, kernel.rows);
    for (Pieces c = columns; c.count <= c.size && c.count <= most; ++c.count)
      for (Pieces r = rows; r.count <= most_rows && r.count * c.count <= most; ++r.count) {
        const double cost = time(r, c, threads, costs);
        if (cost >= best) continue;
        best = cost;
        best_rows = r;
        best_columns = c;
      }
    rows = best_rows;
    columns = best_columns;
  }

  // In panels, a last one of very few rows takes as long as one of kLeastRows.
  double panels_in_time(int64_t rows) const {
    const int64_t rest = rows % kernel.rows, whole = rows - rest;
    const bool is_slow = rest > 0 && rest < kLeastRows && (packs_a_within() || whole == 0);
    return static_cast<double>(whole + (is_slow ? kLeastRows : rest)) / kernel.rows;
  }

  // Apart from the register tiles of a tile: to pack or read a panel of either operand, to hand it out.
  struct Costs {
    double column_panel, row_panel, tile;
  };
  Costs side_costs() const {
    return {b == Packing::on_the_way ? kTimeOnTheWay * kGroup<T>
            : b == Packing::within   ? kRowsPacked / static_cast<double>(kernel.rows)
                                     : 0,
            a == Packing::within       ? kTimePacked
            : a == Packing::on_the_way ? kTimeKept
                                       : kTimeInPlace,
            kHandOut / static_cast<double>(kernel.rows * kernel.columns * groups_)};
  }

  // More tiles even out what threads lose to others.
  double time(const Pieces& r, const Pieces& c, int64_t threads, const Costs& costs) const {
    const double row_panels = panels_in_time(r.largest()), column_panels = static_cast<double>(c.largest());
    const double rounds = static_cast<double>(ceil_div(r.count * c.count, threads));
    const double tile = row_panels * column_panels + costs.column_panel * column_panels +
                        costs.row_panel * row_panels + costs.tile;
    return tile * (rounds + kTimeUneven);
  }
};

}  // namespace gemm_detail
}  // namespace retrograd::cpu
