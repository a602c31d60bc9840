// How one matrix product is cut and packed, and its tiles computed: the part of cpu/gemm.cc between the public
// functions and the kernels of an instruction-set level (cpu/kernels/gemm_kernels.h).
//
// C is cut into tiles, the chunks of a parallel loop. Within a tile k runs in blocks of about equal depth, at
// most kDepth, so that a column panel of B stays in the first-level cache while the rows of the tile pass by. An
// operand is read
// - where it lies, when it lies well or is used little;
// - from panels that every tile packs for itself, when each of its panels is used by one tile: they never
//   leave the caches of a core;
// - else from panels that are packed before the tiles, by a parallel loop of its own.
//
// Sizes and strides alone decide. However a product is cut across, each element of C is the sum over k in the
// same blocks and the same order.
#pragma once

#include <algorithm>
#include <cstdlib>

#include "cpu/gemm.h"
#include "cpu/kernels/gemm_kernels.h"
#include "cpu/parallel.h"
#include "cpu/scratch.h"

namespace retrograd::cpu {

namespace gemm_detail {

inline int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b > 0); }

inline constexpr int64_t kDepth = 256;            // of one block of k, in packed elements
inline constexpr int64_t kDepthStep = 16;         // which the depth of a block is a multiple of, for the packing
inline constexpr int64_t kTileRowPanels = 16;     // rows of a tile of C: 96 (224 with AVX-512)
inline constexpr int64_t kAllRowPanels = 24;      // of a C whose rows all belong to a tile
inline constexpr int64_t kAllColumnPanels = 24;   // of a C whose columns all belong to a tile
inline constexpr int64_t kGroupPanels = 4;        // of a B of contiguous rows, packed together within a tile
inline constexpr int64_t kTileBytes = 2048;       // columns of a tile of C: 512 floats
inline constexpr int64_t kTileWork = 1 << 20;     // multiplications below which a tile is not made smaller
inline constexpr int64_t kPackWork = 1 << 15;     // elements packed by a chunk, at least
inline constexpr int64_t kTiles = 16;             // number above which tiles are not made smaller
inline constexpr int64_t kSmallBytes = 32 << 10;  // a B of this size stays in the first-level cache
inline constexpr int64_t kFarBytes = 1024;        // steps along k from which reading A where it lies is slow
inline constexpr int64_t kSlabBytes = int64_t{64} << 20;  // of packed operands: a larger k is done in slabs,
inline constexpr int64_t kNearSlabBytes = 4 << 20;        // earlier beside a C that stays in a cache
inline constexpr int64_t kNearBytes = 1 << 20;            // of this size

template <class T>
using Packed = typename GemmTypes<T>::Packed;
template <class T>
inline constexpr int64_t kGroup = GemmTypes<T>::group;

/// Elements of a block of k > 0, but for the last one.
template <class T>
int64_t block_depth(int64_t k) {
  const int64_t most = kDepth * kGroup<T>, step = kDepthStep * kGroup<T>;
  return ceil_div(ceil_div(k, ceil_div(k, most)), step) * step;
}

template <class T>
MatrixView<T> transposed(MatrixView<T> x) {
  return {x.data, x.column, x.row};
}

enum class Packing : uint8_t { none, before, within };

template <class T>
struct Plan {
  const GemmKernels<T>& kernel = gemm_kernels<T>();
  int64_t row_panels, column_panels, tile_rows, tile_columns;  // in panels
  int64_t depth;                                               // of a block of k, in elements of T
  Packing a = Packing::none, b = Packing::none;

  explicit Plan(const Gemm<T>& g)
      : row_panels(ceil_div(g.m, kernel.rows)),
        column_panels(ceil_div(g.n, kernel.columns)),
        tile_rows(std::min(kTileRowPanels, row_panels)),
        tile_columns(
            std::min(kTileBytes / static_cast<int64_t>(sizeof(Packed<T>)) / kernel.columns, column_panels)),
        depth(block_depth<T>(g.k)) {
    const bool packs_a = worth_packing_a(g), packs_b = worth_packing_b(g);
    const int64_t least = g.b.column == 1 ? kTiles * kGroupPanels : kTiles / 2;
    const bool all_rows = packs_b && row_panels <= kAllRowPanels && column_panels >= least;
    const bool all_columns =
        packs_a && !all_rows && column_panels <= kAllColumnPanels && row_panels >= kTiles / 2;
    if (all_rows) tile_rows = row_panels;
    if (all_columns) tile_columns = column_panels;
    cut(g.k, !all_rows, !all_columns);
    if (packs_a) a = all_columns ? Packing::within : Packing::before;
    if (packs_b) b = all_rows ? Packing::within : Packing::before;
  }

  int64_t tiles_down() const { return ceil_div(row_panels, tile_rows); }
  int64_t tiles() const { return tiles_down() * ceil_div(column_panels, tile_columns); }

 private:
  static int64_t bytes(int64_t n) { return std::abs(n) * static_cast<int64_t>(sizeof(T)); }

  // What must be grouped is packed always.
  bool worth_packing_b(const Gemm<T>& g) const {
    const bool small = g.n <= kSmallBytes && g.k <= kSmallBytes && bytes(g.n * g.k) <= kSmallBytes;
    return kGroup<T> > 1 || g.b.column != 1 || !(small || g.m <= 4 * kernel.rows);
  }
  bool worth_packing_a(const Gemm<T>& g) const {
    const int64_t step = std::max(bytes(g.a.column), g.a.column == 1 ? bytes(g.a.row) / 4 : 0);
    return kGroup<T> > 1 || (g.n > 4 * kernel.columns && step >= kFarBytes);
  }

  // Tiles become smaller while there are few of them and each is still worth a chunk; then they are made
  // equal.
  void cut(int64_t k, bool down, bool across) {
    const int64_t panel_work = kernel.rows * kernel.columns * std::min(k, kTileWork);
    while (tiles() < kTiles && tile_rows * tile_columns * panel_work >= 2 * kTileWork) {
      const bool rows = down && tile_rows > 1, columns = across && tile_columns > 1;
      if (!rows && !columns) break;
      int64_t& side = rows && (tile_rows * kernel.rows > tile_columns * kernel.columns || !columns)
                          ? tile_rows
                          : tile_columns;
      side = ceil_div(side, 2);
    }
    tile_rows = ceil_div(row_panels, ceil_div(row_panels, tile_rows));
    tile_columns = ceil_div(column_panels, ceil_div(column_panels, tile_columns));
  }
};

/// One slab of k: what is packed before, and the tiles computed.
template <class T>
class Slab {
 public:
  Slab(const Gemm<T>& g, const Plan<T>& plan)
      : g_(g),
        plan_(plan),
        a_(plan.a == Packing::before ? plan.row_panels * plan.kernel.rows * groups(g.k) : 0),
        b_(plan.b == Packing::before ? plan.column_panels * plan.kernel.columns * groups(g.k) : 0) {}

  void run() const {
    pack_before();
    const int64_t down = plan_.tiles_down(), tiles = plan_.tiles();
    const int64_t deepest = groups(std::min(plan_.depth, g_.k)),
                  a_size = plan_.a == Packing::within ? plan_.tile_rows * plan_.kernel.rows * deepest : 0,
                  b_size = plan_.b == Packing::within ? group() * plan_.kernel.columns * deepest : 0;
    const ThreadScratch<Packed<T>> a(a_size, tiles), b(b_size, tiles);
    parallel_for(tiles, [&](int64_t tile) {
      compute(tile % down * plan_.tile_rows, tile / down * plan_.tile_columns, {a.mine(), b.mine()});
    });
  }

 private:
  // Panels of a thread, for what is packed within tiles.
  struct Own {
    Packed<T>*a, *b;
  };

  static int64_t groups(int64_t k) { return ceil_div(k, kGroup<T>); }

  // An operand packed before is a sequence of blocks of k, each a sequence of panels; packed in that order, so
  // that neighbours in memory are read at about the same time.
  void pack_before() const {
    const int64_t a_panels = plan_.a == Packing::before ? plan_.row_panels : 0,
                  b_panels = plan_.b == Packing::before ? plan_.column_panels : 0,
                  panels = a_panels + b_panels;
    const int64_t work = plan_.kernel.columns * std::min(plan_.depth, g_.k);
    parallel_range(panels * ceil_div(g_.k, plan_.depth), ceil_div(kPackWork, work),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t i = begin; i < end; ++i) {
                       const int64_t p = i % panels, l = i / panels * plan_.depth;
                       const int64_t depth = std::min(plan_.depth, g_.k - l);
                       if (p < a_panels)
                         pack_a(p, l, depth, place(a_, plan_.kernel.rows, a_panels, p, l, depth));
                       else
                         pack_b(p - a_panels, l, depth,
                                place(b_, plan_.kernel.columns, b_panels, p - a_panels, l, depth));
                     }
                   });
  }

  static Packed<T>* place(const Scratch<Packed<T>>& to, int width, int64_t panels, int64_t panel, int64_t l,
                          int64_t depth) {
    return to.data() + width * (groups(l) * panels + panel * groups(depth));
  }

  void pack_a(int64_t panel, int64_t l, int64_t depth, Packed<T>* out) const {
    pack_panel(g_.a, panel, plan_.kernel.rows, g_.m, l, depth, out);
  }
  void pack_b(int64_t panel, int64_t l, int64_t depth, Packed<T>* out) const {
    pack_panel(transposed(g_.b), panel, plan_.kernel.columns, g_.n, l, depth, out);
  }
  void pack_panel(MatrixView<T> x, int64_t panel, int width, int64_t size, int64_t l, int64_t depth,
                  Packed<T>* out) const {
    const int64_t count = std::min<int64_t>(width, size - panel * width);
    plan_.kernel.pack(x.data + panel * width * x.row + l * x.column, x.row, x.column, count, width, depth,
                      out);
  }

  // The tile whose first row panel and column panel these are.
  void compute(int64_t row_panel, int64_t column_panel, Own own) const {
    const int rows = plan_.kernel.rows, columns = plan_.kernel.columns;
    const int64_t i = row_panel * rows, j = column_panel * columns;
    GemmBlock<T> x;
    x.m = std::min(plan_.tile_rows * rows, g_.m - i);
    x.n = std::min(plan_.tile_columns * columns, g_.n - j);
    x.c = g_.c + i * g_.c_row + j;
    x.c_row = g_.c_row;
    x.start_row = g_.start_row;
    x.alpha = g_.alpha;
    for (int64_t l = 0; l < g_.k; l += plan_.depth) {
      const int64_t depth = std::min(plan_.depth, g_.k - l);
      x.k = groups(depth);
      x.accumulate = g_.accumulate || l > 0;
      x.start = l == 0 && g_.start ? g_.start + i * g_.start_row + j : nullptr;
      set_a(x, row_panel, l, depth, own.a);
      if (plan_.b == Packing::within) {
        by_panels(x, column_panel, l, depth, own.b);
      } else {
        set_b(x, column_panel, l);
        plan_.kernel.block(x);
      }
    }
  }

  void set_a(GemmBlock<T>& x, int64_t panel, int64_t l, int64_t depth, Packed<T>* own) const {
    const int rows = plan_.kernel.rows;
    x.a_panel = rows * x.k;
    x.a_row = 1;
    x.a_column = rows;
    if (plan_.a == Packing::before) {
      x.a = a_.data() + rows * (groups(l) * plan_.row_panels + panel * x.k);
    } else if (plan_.a == Packing::within) {
      x.a = own;
      for (int64_t p = 0; p < ceil_div(x.m, rows); ++p) pack_a(panel + p, l, depth, own + p * x.a_panel);
    } else {
      x.a = in_place(g_.a, panel * rows, l);
      x.a_panel = rows * g_.a.row;
      x.a_row = g_.a.row;
      x.a_column = g_.a.column;
    }
  }

  void set_b(GemmBlock<T>& x, int64_t panel, int64_t l) const {
    const int columns = plan_.kernel.columns;
    x.b_padded = plan_.b == Packing::before;
    x.b = x.b_padded ? b_.data() + columns * (groups(l) * plan_.column_panels + panel * x.k)
                     : in_place(g_.b, l, panel * columns);
    x.b_panel = x.b_padded ? columns * x.k : columns;
    x.b_row = x.b_padded ? columns : g_.b.row;
  }

  // A panel of B is packed right before it is used, or a few together whose rows are neighbours in memory.
  int64_t group() const { return g_.b.column == 1 ? kGroupPanels : 1; }

  void by_panels(const GemmBlock<T>& all, int64_t panel, int64_t l, int64_t depth, Packed<T>* own) const {
    const int columns = plan_.kernel.columns;
    GemmBlock<T> x = all;
    x.b = own;
    x.b_panel = columns * all.k;
    x.b_row = columns;
    x.b_padded = true;
    for (int64_t j = 0; j < all.n; j += group() * columns, panel += group()) {
      x.n = std::min(group() * columns, all.n - j);
      x.c = all.c + j;
      x.start = all.start ? all.start + j : nullptr;
      for (int64_t p = 0; p < ceil_div(x.n, columns); ++p) pack_b(panel + p, l, depth, own + p * x.b_panel);
      plan_.kernel.block(x);
    }
  }

  // Only what is not grouped is read where it lies.
  static const Packed<T>* in_place(MatrixView<T> x, int64_t row, int64_t column) {
    if constexpr (kGroup<T> == 1)
      return x.data + row * x.row + column * x.column;
    else
      return nullptr;
  }

  const Gemm<T>& g_;
  const Plan<T>& plan_;
  const Scratch<Packed<T>> a_, b_;
};

/// In slabs of k, so that what is packed before has a limit. The plan is that of a product of these sizes and
/// strides, none of which is zero.
template <class T>
void run_tiles(const Gemm<T>& g, const Plan<T>& plan) {
  const int64_t across = (plan.a == Packing::before ? g.m : 0) + (plan.b == Packing::before ? g.n : 0);
  const bool near = g.m * g.n * static_cast<int64_t>(sizeof(typename Gemm<T>::Sum)) <= kNearBytes;
  const int64_t most =
      (near ? kNearSlabBytes : kSlabBytes) / static_cast<int64_t>(sizeof(T)) / std::max<int64_t>(across, 1);
  const int64_t slab = std::max<int64_t>(1, most / plan.depth) * plan.depth;
  Gemm<T> part = g;
  for (int64_t l = 0; l < g.k; l += slab) {
    part.k = std::min(slab, g.k - l);
    part.a.data = g.a.data + l * g.a.column;
    part.b.data = g.b.data + l * g.b.row;
    part.accumulate = g.accumulate || l > 0;
    part.start = l > 0 ? nullptr : g.start;
    Slab<T>(part, plan).run();
  }
}

}  // namespace gemm_detail
}  // namespace retrograd::cpu
