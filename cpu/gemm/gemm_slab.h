// Carries out the plan of a matrix product (cpu/gemm/gemm_plan.h): packs the operands that are packed before the
// tiles, runs the tiles, in slabs of k if the packed operands would be too large.
//
// Slab is one slab of k, and the function object of the parallel loop over its tiles. It owns the panels that are
// packed before (a_, b_) and one set of panels per thread for operands that tiles pack themselves (own_a_, own_b_). A
// tile processes its blocks of k in order and passes each to GemmKernels::block, whole or panel by panel.
//
// Invariant: each element of C is written by one tile, and its blocks of k are added in order. Start reading
// at run_tiles(), then Slab::compute.
#pragma once

#include <optional>

#include "cpu/gemm/gemm_plan.h"
#include "cpu/scratch.h"
#include "engine/prefetch.h"

namespace retrograd::inline v0::cpu {

namespace gemm_detail {

inline constexpr int64_t kPackWork = 1 << 15;  // elements packed by a chunk, at least
inline constexpr int64_t kGroupPanels = 4;     // of a B of contiguous rows, packed together within a tile
inline constexpr int64_t kSlabBytes = int64_t{64} << 20;  // of packed operands: a larger k is done in slabs,
inline constexpr int64_t kNearSlabBytes = 4 << 20;        // earlier if C stays in a cache
inline constexpr int64_t kNearBytes = 1 << 20;            // of this size

/// One slab of k: packs operands, then computes the tiles. All data that a tile needs of the product and the plan is
/// in this object, whose cache lines a thread fetches concurrently: one after the other they would take a good part
/// of the time of a small tile.
template <class T>
class alignas(kCacheLine) Slab {
 public:
  Slab(const Gemm<T>& g, const Plan<T>& plan)
      : g_(g),
        plan_(plan),
        a_(plan.a == Packing::before ? a_panels() * plan.kernel.rows * groups(g.k) : 0),
        b_(plan.b == Packing::before ? plan.columns.size * plan.kernel.columns * groups(g.k) : 0) {}

  void run() {
    if (plan_.a == Packing::before || plan_.b == Packing::before) pack_before();
    const int64_t deepest = groups(std::min(plan_.depth, g_.k)),
                  a_size = plan_.packs_a_within() ? plan_.row_panels() * plan_.kernel.rows * deepest : 0,
                  b_panels = plan_.b == Packing::within       ? group()
                             : plan_.b == Packing::on_the_way ? 1
                                                              : 0;
    own_a_.emplace(a_size, plan_.tiles());
    own_b_.emplace(b_panels * plan_.kernel.columns * deepest, plan_.tiles());
    parallel_for(plan_.tiles(), *this);
  }
  void operator()(int64_t tile) const {
    prefetch<CacheLevel::first>(this, sizeof(*this));
    const int64_t columns = plan_.columns.count;
    compute(tile / columns, tile % columns, {own_a_->mine(), own_b_->mine()});
  }

 private:
  // Panels of a thread, for what is packed within tiles.
  struct Own {
    Packed<T>*a, *b;
  };

  static int64_t groups(int64_t k) { return ceil_div(k, kGroup<T>); }

  // An operand packed before is a sequence of blocks of k, each a sequence of panels; packed in that order,
  // so that neighbours in memory are read at about the same time.
  void pack_before() const {
    const int64_t a_count = plan_.a == Packing::before ? a_panels() : 0,
                  b_count = plan_.b == Packing::before ? plan_.columns.size : 0, panels = a_count + b_count;
    const int64_t work = plan_.kernel.columns * std::min(plan_.depth, g_.k);
    parallel_range(panels * ceil_div(g_.k, plan_.depth), ceil_div(kPackWork, work),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t i = begin; i < end; ++i) {
                       const int64_t p = i % panels, l = i / panels * plan_.depth;
                       const int64_t depth = std::min(plan_.depth, g_.k - l);
                       if (p < a_count)
                         pack_a(p / plan_.row_panels(), p % plan_.row_panels(), l, depth,
                                place(a_, plan_.kernel.rows, a_count, p, l, depth));
                       else
                         pack_b(p - a_count, 1, l, depth,
                                place(b_, plan_.kernel.columns, b_count, p - a_count, l, depth));
                     }
                   });
  }

  static Packed<T>* place(const Scratch<Packed<T>>& to, int width, int64_t panels, int64_t panel, int64_t l,
                          int64_t depth) {
    return to.data() + width * (groups(l) * panels + panel * groups(depth));
  }

  // Pieces of rows have panels of their own, all as many as the largest: some may be empty.
  int64_t a_panels() const { return plan_.rows.count * plan_.row_panels(); }
  void pack_a(int64_t piece, int64_t panel, int64_t l, int64_t depth, Packed<T>* out) const {
    const int64_t begin = plan_.rows.begin(piece) + panel * plan_.kernel.rows;
    pack_rows(begin, std::min<int64_t>(plan_.rows.begin(piece + 1) - begin, plan_.kernel.rows), l, depth,
              out);
  }
  void pack_b(int64_t panel, int64_t panels, int64_t l, int64_t depth, Packed<T>* out) const {
    const int64_t begin = panel * plan_.kernel.columns;
    pack_panels(plan_.kernel.pack, transposed(g_.b), begin,
                std::min(g_.n - begin, panels * plan_.kernel.columns), plan_.kernel.columns, l, depth, out);
  }
  // Of A, `size` rows from `begin` on, which may be none.
  void pack_rows(int64_t begin, int64_t size, int64_t l, int64_t depth, Packed<T>* out) const {
    const GemmKernels<T>& kernel = plan_.kernel;
    pack_panels(kernel.pack_a ? kernel.pack_a : kernel.pack, g_.a, begin, size, kernel.rows, l, depth, out);
  }
  void pack_panels(decltype(GemmKernels<T>::pack) pack, MatrixView<T> x, int64_t begin, int64_t size,
                   int width, int64_t l, int64_t depth, Packed<T>* out) const {
    pack(x.data + begin * x.row + l * x.column, x.row, x.column, size, width, depth, out,
         width * groups(depth));
  }

  void compute(int64_t row_piece, int64_t column_piece, Own own) const {
    const Pieces &down = plan_.rows, &across = plan_.columns;
    const int64_t i = down.begin(row_piece), column_panel = across.begin(column_piece),
                  j = column_panel * plan_.kernel.columns;
    GemmBlock<T> x{};
    x.m = down.begin(row_piece + 1) - i;
    x.n = std::min(across.begin(column_piece + 1) * plan_.kernel.columns, g_.n) - j;
    x.c = g_.c ? g_.c + i * g_.c_row + j : nullptr;
    x.c_row = g_.c_row;
    x.rounded_row = g_.rounded_row;
    x.start_row = g_.start_row;
    x.alpha = g_.alpha;
    for (int64_t l = 0; l < g_.k; l += plan_.depth) {
      const int64_t depth = std::min(plan_.depth, g_.k - l);
      x.k = groups(depth);
      x.accumulate = g_.accumulate || l > 0;
      x.start = l == 0 && g_.start ? g_.start + i * g_.start_row + j : nullptr;
      x.rounded = l + depth == g_.k && g_.rounded ? g_.rounded + i * g_.rounded_row + j : nullptr;
      set_a(x, row_piece, l, depth, own.a);
      if (plan_.b == Packing::within || plan_.b == Packing::on_the_way) {
        by_panels(x, column_panel, l, depth, own.b);
      } else {
        set_b(x, column_panel, l);
        run_block(x);
      }
    }
  }

  void set_a(GemmBlock<T>& x, int64_t piece, int64_t l, int64_t depth, Packed<T>* own) const {
    const int rows = plan_.kernel.rows;
    x.a_panel = rows * x.k;
    x.a_row = 1;
    x.a_column = rows;
    if (plan_.a == Packing::before) {
      x.a = a_.data() + rows * (groups(l) * a_panels() + piece * plan_.row_panels() * x.k);
    } else if (plan_.a == Packing::within) {
      x.a = own;
      pack_rows(plan_.rows.begin(piece), x.m, l, depth, own);
    } else {
      x.keep_a = plan_.a == Packing::on_the_way ? own : nullptr;
      x.a = in_place(g_.a, plan_.rows.begin(piece), l);
      x.a_panel = rows * g_.a.row / kGroup<T>;
      x.a_row = g_.a.row / kGroup<T>;
      x.a_column = g_.a.column;
    }
  }

  // If A is packed on the way, the first column panel packs it for the others and for later blocks.
  void run_block(GemmBlock<T>& x) const {
    if (!x.keep_a) return plan_.kernel.block(x);
    const int columns = plan_.kernel.columns;
    GemmBlock<T> part = x;
    part.n = std::min<int64_t>(x.n, columns);
    part.n_ahead = x.n + x.n_ahead - part.n;
    plan_.kernel.block(part);
    x.a = x.keep_a;
    x.a_panel = plan_.kernel.rows * x.k;
    x.a_row = 1;
    x.a_column = plan_.kernel.rows;
    x.keep_a = nullptr;
    if (x.n <= columns) return;
    part = x;
    part.n = x.n - columns;
    part.b = x.b + x.b_panel;
    place(part, x, columns);
    plan_.kernel.block(part);
  }

  void set_b(GemmBlock<T>& x, int64_t panel, int64_t l) const {
    const int columns = plan_.kernel.columns;
    x.b_padded = plan_.b == Packing::before;
    x.b = x.b_padded ? b_.data() + columns * (groups(l) * plan_.columns.size + panel * x.k)
                     : in_place(g_.b, l, panel * columns);
    x.b_panel = x.b_padded ? columns * x.k : columns;
    x.b_row = x.b_padded ? columns : g_.b.row;
  }

  // A panel of B is packed right before it is used, or a few together whose rows are neighbours in memory.
  int64_t group() const { return plan_.b == Packing::within && g_.b.column == 1 ? kGroupPanels : 1; }

  void by_panels(const GemmBlock<T>& all, int64_t panel, int64_t l, int64_t depth, Packed<T>* own) const {
    const int columns = plan_.kernel.columns;
    GemmBlock<T> x = all;
    x.b = own;
    x.b_panel = columns * all.k;
    x.b_row = columns;
    x.b_padded = true;
    int64_t at = 0;
    if (plan_.b == Packing::on_the_way) {
      x.n = columns;
      x.keep = own;
      x.rows_step = g_.b.row;
      for (; at + columns <= all.n; at += columns, ++panel) {
        x.rows = g_.b.data + l * g_.b.row + panel * columns;
        place(x, all, at);
        x.ahead = next(all, panel, at, 1, l);
        run_block(x);
      }
      x.rows = nullptr;
    }
    for (; at < all.n; at += group() * columns, panel += group()) {
      x.n = std::min(group() * columns, all.n - at);
      place(x, all, at);
      x.ahead = next(all, panel, at, group(), l);
      pack_b(panel, ceil_div(x.n, columns), l, depth, own);
      run_block(x);
    }
  }

  // The part of B that a tile reads after `panels` panels that begin at its column `at`: the next panels, or the
  // first ones of the next block of k.
  Ahead next(const GemmBlock<T>& tile, int64_t panel, int64_t at, int64_t panels, int64_t l) const {
    const int columns = plan_.kernel.columns;
    if (at + panels * columns < tile.n) {
      panel += panels;
      at += panels * columns;
    } else {
      panel -= at / columns;
      at = 0;
      l += plan_.depth;
    }
    const int64_t all = plan_.kernel.near_b / static_cast<int64_t>(sizeof(T)) / g_.n;
    if (l >= g_.k || g_.k <= all) return {};
    const int64_t k = std::min(plan_.depth, g_.k - l), n = std::min(panels * columns, tile.n - at),
                  size = sizeof(T);
    const T* data = g_.b.data + l * g_.b.row + panel * columns * g_.b.column;
    if (g_.b.column == 1) return {data, k, n * size, g_.b.row * size};
    if (g_.b.row == 1) return {data, n, k * size, g_.b.column * size};
    return {};
  }

  // Of C and what it starts from, the n columns from `at` on. A B from memory leaves nothing near.
  void place(GemmBlock<T>& x, const GemmBlock<T>& all, int64_t at) const {
    x.a_is_near = at > 0 && g_.n * g_.k * static_cast<int64_t>(sizeof(T)) < kFarB;
    x.n_ahead = all.n + all.n_ahead - at - x.n;
    x.c = all.c ? all.c + at : nullptr;
    x.start = all.start ? all.start + at : nullptr;
    x.rounded = all.rounded ? all.rounded + at : nullptr;
  }

  // Groups are readable in place if their elements are neighbours.
  static const Packed<T>* in_place(MatrixView<T> x, int64_t row, int64_t column) {
    return reinterpret_cast<const Packed<T>*>(x.data + row * x.row + column * x.column);
  }

  const Gemm<T> g_;
  const Plan<T> plan_;
  const Scratch<Packed<T>> a_, b_;
  std::optional<ThreadScratch<Packed<T>>> own_a_, own_b_;
};

/// Runs in slabs of k, so that the packed memory is limited. The plan is that of a product of these sizes and
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
    part.rounded = l + part.k == g.k ? g.rounded : nullptr;
    Slab<T>(part, plan).run();
  }
}

/// Whether one call of the kernel computes it, from operands in place.
template <class T>
bool is_one_block(const Gemm<T>& g, const Plan<T>& plan) {
  return kGroup<T> == 1 && plan.tiles() == 1 && plan.a == Packing::none && plan.b == Packing::none &&
         g.k <= plan.depth;
}

template <class T>
GemmBlock<T> one_block(const Gemm<T>& g, const Plan<T>& plan) {
  static_assert(kGroup<T> == 1);
  GemmBlock<T> x{};
  x.m = g.m;
  x.n = g.n;
  x.k = g.k;
  x.a = g.a.data;
  x.a_panel = plan.kernel.rows * g.a.row;
  x.a_row = g.a.row;
  x.a_column = g.a.column;
  x.b = g.b.data;
  x.b_panel = plan.kernel.columns;
  x.b_row = g.b.row;
  x.c = g.c;
  x.c_row = g.c_row;
  x.alpha = g.alpha;
  x.accumulate = g.accumulate;
  x.start = g.start;
  x.start_row = g.start_row;
  return x;
}

}  // namespace gemm_detail
}  // namespace retrograd::cpu
