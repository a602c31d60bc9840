// Cuts matrix products into blocks for the kernels of one instruction-set level.
//
// There are three ways, chosen by sizes and strides alone.
// - Thin, for m or n of at most kThin: the big operand is read once, by dot products or by sums of scaled
// rows.
// - In place, for a small B, or one used for few rows: it is read where it lies, but for a ragged last panel.
// - Packed: B, and A where it lies badly, are copied once into panels.
//
// k runs in blocks of kDepth, so that a column panel of B stays in the first-level cache while the rows of a
// tile of C pass by. Tiles of C are the chunks of a parallel loop; packing is a parallel loop of its own, so
// it happens once however many tiles read it.
#include "cpu/gemm.h"

#include <algorithm>

#include "cpu/features.h"
#include "cpu/kernels/gemm_kernels.h"
#include "cpu/parallel.h"
#include "cpu/scratch.h"

namespace retrograd::cpu {
namespace {

constexpr int64_t kThin = 3;
constexpr int64_t kDepth = 256;                    // of one block of k
constexpr int64_t kTileRowPanels = 16;             // rows of a tile of C: 96 (224 with AVX-512)
constexpr int64_t kTileBytes = 2048;               // columns of a tile of C: 512 floats
constexpr int64_t kTileWork = 1 << 20;             // multiplications below which a tile is not made smaller
constexpr int64_t kTiles = 16;                     // number above which tiles are not made smaller
constexpr int64_t kSmallBytes = 32 << 10;          // a B of this size stays in the first-level cache
constexpr int64_t kFarBytes = 1024;                // steps along k from which reading A where it lies is slow
constexpr int64_t kSlabBytes = int64_t{64} << 20;  // of packed operands: a larger k is done in slabs
constexpr int64_t kStreamBytes = 256 << 10;        // of the big operand, in a chunk of a thin product
constexpr int64_t kDotBlock = 512;

int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b > 0); }

}  // namespace

template <class T>
const GemmKernels<T>& gemm_kernels() {
#if defined(__x86_64__)
  switch (level()) {
    case Level::avx512: return avx512::gemm_kernels(T{});
    case Level::avx2: return avx2::gemm_kernels(T{});
    case Level::baseline: break;
  }
#endif
  return baseline::gemm_kernels(T{});
}
template const GemmKernels<float>& gemm_kernels<float>();
template const GemmKernels<double>& gemm_kernels<double>();

namespace {

template <class T>
MatrixView<T> transposed(MatrixView<T> x) {
  return {x.data, x.column, x.row};
}

// x as contiguous elements: itself, or copied into `buffer`.
template <class T>
const T* contiguous(const T* x, int64_t step, int64_t n, T* buffer) {
  if (step == 1) return x;
  for (int64_t i = 0; i < n; ++i) buffer[i] = x[i * step];
  return buffer;
}

// y[j * y_step] (+)= alpha * sum over l of x[l] * b[l, j]: one row of a thin product.
template <class T>
void thin_row(const T* x, MatrixView<T> b, int64_t n, int64_t k, T* y, int64_t y_step, T alpha,
              bool accumulate) {
  const GemmKernels<T>& kernel = gemm_kernels<T>();
  const bool by_rows = b.column == 1;  // else its columns are read, contiguous or not
  const int64_t column_bytes = static_cast<int64_t>(sizeof(T)) * std::max<int64_t>(k, 1);
  const int64_t grain = std::max<int64_t>(by_rows ? 1024 : 4, kStreamBytes / column_bytes / 4 * 4);
  parallel_range(n, grain, [&](int64_t begin, int64_t end) {
    const MatrixView<T> part{b.data + begin * b.column, b.row, b.column};
    if (by_rows)
      kernel.combine(x, part.data, part.row, end - begin, k, y + begin * y_step, y_step, alpha, accumulate);
    else
      kernel.dots(part.data, part.column, part.row, x, end - begin, k, y + begin * y_step, y_step, alpha,
                  accumulate);
  });
}

template <class T>
void thin(const Gemm<T>& g) {
  const bool few_rows = g.m <= g.n;
  const Scratch<T> buffer((few_rows ? g.a.column : g.b.row) != 1 ? g.k : 0);
  if (measuring()) return;
  const int64_t count = few_rows ? g.m : g.n;
  for (int64_t i = 0; i < count; ++i) {
    const MatrixView<T> narrow = few_rows ? g.a : transposed(g.b), wide = few_rows ? g.b : transposed(g.a);
    const T* x = contiguous(narrow.data + i * narrow.row, narrow.column, g.k, buffer.data());
    T* y = g.c + i * (few_rows ? g.c_row : 1);
    thin_row(x, wide, few_rows ? g.n : g.m, g.k, y, few_rows ? 1 : g.c_row, g.alpha, g.accumulate);
  }
}

// How C is cut, and which operands are packed.
template <class T>
struct Plan {
  const GemmKernels<T>& kernel = gemm_kernels<T>();
  int64_t row_panels, column_panels, tile_rows, tile_columns;  // in panels
  bool pack_a, pack_b;

  explicit Plan(const Gemm<T>& g)
      : row_panels(ceil_div(g.m, kernel.rows)),
        column_panels(ceil_div(g.n, kernel.columns)),
        tile_rows(kTileRowPanels),
        tile_columns(kTileBytes / static_cast<int64_t>(sizeof(T)) / kernel.columns) {
    const auto bytes = [](int64_t n) { return std::abs(n) * static_cast<int64_t>(sizeof(T)); };
    const bool small_b = g.n <= kSmallBytes && g.k <= kSmallBytes && bytes(g.n * g.k) <= kSmallBytes;
    pack_b = g.b.column != 1 || !(small_b || g.m <= 4 * kernel.rows);
    pack_a = g.n > 4 * kernel.columns &&
             std::max(bytes(g.a.column), g.a.column == 1 ? bytes(g.a.row) / 4 : 0) >= kFarBytes;
    cut(g.k);
  }

  int64_t tiles() const { return ceil_div(row_panels, tile_rows) * ceil_div(column_panels, tile_columns); }

 private:
  // Tiles become smaller while there are few of them and each is still worth a chunk; then they are made
  // equal.
  void cut(int64_t k) {
    tile_rows = std::min(tile_rows, row_panels);
    tile_columns = std::min(tile_columns, column_panels);
    const int64_t panel_work = kernel.rows * kernel.columns * std::min(k, kTileWork);
    while (tiles() < kTiles && tile_rows * tile_columns > 1 &&
           tile_rows * tile_columns * panel_work >= 2 * kTileWork) {
      int64_t& side = tile_rows * kernel.rows > tile_columns * kernel.columns || tile_columns == 1
                          ? tile_rows
                          : tile_columns;
      side = ceil_div(side, 2);
    }
    tile_rows = ceil_div(row_panels, ceil_div(row_panels, tile_rows));
    tile_columns = ceil_div(column_panels, ceil_div(column_panels, tile_columns));
  }
};

// One slab of k: operands packed as planned, and the tiles computed from them.
template <class T>
class Slab {
 public:
  Slab(const Gemm<T>& g, const Plan<T>& plan)
      : g_(g),
        plan_(plan),
        ragged_(g.n % plan.kernel.columns != 0),
        a_(plan.pack_a ? plan.row_panels * plan.kernel.rows * g.k : 0),
        b_((plan.pack_b ? plan.column_panels : ragged_) * plan.kernel.columns * g.k) {}

  void run() const {
    pack();
    const int64_t down = ceil_div(plan_.row_panels, plan_.tile_rows),
                  across = ceil_div(plan_.column_panels, plan_.tile_columns);
    parallel_for(down * across, [&](int64_t tile) {
      compute(tile % down * plan_.tile_rows, tile / down * plan_.tile_columns);
    });
  }

 private:
  // A packed operand is a sequence of blocks of k, each a sequence of panels.
  void pack() const {
    const int rows = plan_.kernel.rows, columns = plan_.kernel.columns;
    const int64_t a_panels = plan_.pack_a ? plan_.row_panels : 0,
                  b_first = plan_.pack_b ? 0 : plan_.column_panels - ragged_;
    const int64_t panels = a_panels + plan_.column_panels - b_first;
    const int64_t grain = std::max<int64_t>(1, kTileWork / 64 / (columns * std::max<int64_t>(g_.k, 1)));
    parallel_range(panels, grain, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        if (p < a_panels)
          pack_panel(g_.a, p, p, plan_.row_panels, rows, g_.m, a_.data());
        else
          pack_panel(transposed(g_.b), b_first + p - a_panels, p - a_panels, plan_.column_panels - b_first,
                     columns, g_.n, b_.data());
      }
    });
  }

  void pack_panel(MatrixView<T> x, int64_t panel, int64_t place, int64_t panels, int width, int64_t size,
                  T* out) const {
    const int64_t count = std::min<int64_t>(width, size - panel * width);
    for (int64_t l = 0; l < g_.k; l += kDepth) {
      const int64_t depth = std::min(kDepth, g_.k - l);
      plan_.kernel.pack(x.data + panel * width * x.row + l * x.column, x.row, x.column, count, width, depth,
                        out + width * (l * panels + place * depth));
    }
  }

  void compute(int64_t row_panel, int64_t column_panel) const {
    const int rows = plan_.kernel.rows, columns = plan_.kernel.columns;
    const int64_t i = row_panel * rows, j = column_panel * columns;
    const int64_t packed_columns = plan_.pack_b ? plan_.column_panels : ragged_;
    GemmBlock<T> x;
    x.m = std::min(plan_.tile_rows * rows, g_.m - i);
    x.n = std::min(plan_.tile_columns * columns, g_.n - j);
    x.c = g_.c + i * g_.c_row + j;
    x.c_row = g_.c_row;
    x.alpha = g_.alpha;
    for (int64_t l = 0; l < g_.k; l += kDepth) {
      x.k = std::min(kDepth, g_.k - l);
      x.accumulate = g_.accumulate || l > 0;
      if (plan_.pack_a)
        set_a(x, a_.data() + rows * (l * plan_.row_panels + row_panel * x.k), rows * x.k, 1, rows);
      else
        set_a(x, g_.a.data + i * g_.a.row + l * g_.a.column, rows * g_.a.row, g_.a.row, g_.a.column);
      const T* packed = b_.data() + columns * l * packed_columns;
      x.b = plan_.pack_b ? packed + columns * column_panel * x.k : g_.b.data + l * g_.b.row + j;
      x.b_panel = plan_.pack_b ? columns * x.k : columns;
      x.b_row = plan_.pack_b ? columns : g_.b.row;
      x.b_last_row = columns;
      x.b_last = ragged_ ? packed + columns * (packed_columns - 1) * x.k : nullptr;
      plan_.kernel.block(x);
    }
  }

  static void set_a(GemmBlock<T>& x, const T* a, int64_t panel, int64_t row, int64_t column) {
    x.a = a;
    x.a_panel = panel;
    x.a_row = row;
    x.a_column = column;
  }

  const Gemm<T>& g_;
  const Plan<T>& plan_;
  const int64_t ragged_;  // 1 when the last column panel is not full
  const Scratch<T> a_, b_;
};

template <class T>
void clear(const Gemm<T>& g) {
  if (g.accumulate || measuring()) return;
  for (int64_t i = 0; i < g.m; ++i) std::fill_n(g.c + i * g.c_row, g.n, T(0));
}

template <class T>
void run(const Gemm<T>& g) {
  if (g.m == 0 || g.n == 0) return;
  if (g.k == 0) return clear(g);
  if (std::min(g.m, g.n) <= kThin) return thin(g);
  const Plan<T> plan(g);
  const int64_t slab =
      std::max(kDepth, kSlabBytes / static_cast<int64_t>(sizeof(T)) / (g.m + g.n) / kDepth * kDepth);
  Gemm<T> part = g;
  for (int64_t l = 0; l < g.k; l += slab) {
    part.k = std::min(slab, g.k - l);
    part.a.data = g.a.data + l * g.a.column;
    part.b.data = g.b.data + l * g.b.row;
    part.accumulate = g.accumulate || l > 0;
    Slab<T>(part, plan).run();
  }
}

// A batch of large products is run one after the other, each in parallel.
template <class T>
void run_batch(const Gemm<T>& first, std::span<const BatchOffsets> offsets) {
  const int64_t count = static_cast<int64_t>(offsets.size());
  const auto one = [&](int64_t i) {
    Gemm<T> g = first;
    if (measuring()) return run(g);
    const BatchOffsets& at = offsets[static_cast<size_t>(i)];
    g.a.data += at.a;
    g.b.data += at.b;
    g.c += at.c;
    run(g);
  };
  const double work =
      static_cast<double>(first.m) * static_cast<double>(first.n) * static_cast<double>(first.k);
  if (work > static_cast<double>(kTiles / 2 * kTileWork)) {
    for (int64_t i = 0; i < (measuring() ? 1 : count); ++i) one(i);
    return;
  }
  const int64_t grain =
      std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(kTileWork / 2) / std::max(work, 1.0)));
  const int64_t chunks = count_chunks(count, grain);
  const ScratchRoom room(measure_chunk(chunks, [&] { run(first); }), chunks);
  parallel_range(count, grain, [&](int64_t begin, int64_t end) {
    const ScratchArea area = room.lend();
    for (int64_t i = begin; i < end; ++i) one(i);
  });
}

template <class T>
T run_dot(const T* x, int64_t x_step, const T* y, int64_t y_step, int64_t n) {
  const GemmKernels<T>& kernel = gemm_kernels<T>();
  const int64_t blocks = ceil_div(n, kDotBlock);
  const Scratch<T> sums(blocks);
  parallel_range(n, 64 * kDotBlock, [&](int64_t begin, int64_t end) {
    T buffers[2 * kDotBlock];  // for elements with a step
    for (int64_t i = begin; i < end; i += kDotBlock) {
      const int64_t count = std::min(kDotBlock, end - i);
      const T* a = contiguous(x + i * x_step, x_step, count, buffers);
      const T* b = contiguous(y + i * y_step, y_step, count, buffers + kDotBlock);
      kernel.dots(a, 0, 1, b, 1, count, &sums[i / kDotBlock], 1, T(1), false);
    }
  });
  // Pairwise: the sum of 2 j and 2 j + 1 goes to j.
  if (blocks == 0 || measuring()) return T(0);
  for (int64_t left = blocks; left > 1; left = (left + 1) / 2)
    for (int64_t i = 0; i < left; i += 2) sums[i / 2] = i + 1 < left ? sums[i] + sums[i + 1] : sums[i];
  return sums[0];
}

}  // namespace

void gemm(const Gemm<float>& product) { run(product); }
void gemm(const Gemm<double>& product) { run(product); }
void gemm_batched(const Gemm<float>& first, std::span<const BatchOffsets> offsets) {
  run_batch(first, offsets);
}
void gemm_batched(const Gemm<double>& first, std::span<const BatchOffsets> offsets) {
  run_batch(first, offsets);
}

float dot(const float* x, int64_t x_step, const float* y, int64_t y_step, int64_t n) {
  return run_dot(x, x_step, y, y_step, n);
}
double dot(const double* x, int64_t x_step, const double* y, int64_t y_step, int64_t n) {
  return run_dot(x, x_step, y, y_step, n);
}

}  // namespace retrograd::cpu
