// Matrix products by the kernels of one instruction-set level.
//
// A matrix times its own transpose is symmetric to the bit: only the blocks on and above its diagonal are computed.
//
// There are three algorithms, chosen by sizes and strides alone: narrow, for m or n of at most kNarrow if both
// operands are contiguous along k, by dot products of few rows with many; thin, for m or n of at most kThin, which
// reads the big operand once, by dot products or by sums of scaled rows; and tiles (cpu/gemm/gemm_plan.h,
// cpu/gemm/gemm_slab.h). A batch of small products is a parallel loop over them, a batch of large ones a loop over
// parallel products. Dot products are summed in blocks, these in pairs.
#include "cpu/gemm/gemm.h"

#include <algorithm>
#include <optional>

#include "cpu/gemm/gemm_slab.h"
#include "cpu/kernels/levels/copy_rows.h"
#include "cpu/levels.h"

namespace retrograd::inline v0::cpu {

using namespace gemm_detail;

namespace {

constexpr int64_t kThin = 3, kThinSize = 2048;      // with more elements of the big operand
constexpr int64_t kNarrow = 12, kNarrowDepth = 12;  // with k of at least kNarrowDepth times as much
constexpr int64_t kStreamBytes = 256 << 10;         // of the big operand, in a chunk of a thin product
constexpr int64_t kDotBlock = 512;
constexpr int64_t kCopied = 256;  // elements of B
constexpr int64_t kMirrored = 128,
                  kMirroredRows = 64;  // the least size of a mirrored product; rows of its parts
// Products of a batch are each done in parallel if they have more multiplications than kParallelWork, unless they are
// small enough for a core's caches and there are enough of them.
constexpr int64_t kParallelWork = 1 << 23, kNearProduct = 4 << 20, kEnoughProducts = 4;

}  // namespace

namespace {

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

// Initialises C before products are added.
template <class T>
void begin(const Gemm<T>& g) {
  if (measuring() || (g.accumulate && !g.start)) return;
  for (int64_t i = 0; i < g.m; ++i) {
    auto* const row = g.c + i * g.c_row;
    if (g.start)
      std::copy_n(g.start + i * g.start_row, g.n, row);
    else
      std::fill_n(row, g.n, typename Gemm<T>::Sum(0));
  }
}

template <class T>
bool is_narrow(const Gemm<T>& g) {
  const int64_t least = std::min(g.m, g.n);
  return least <= kNarrow && g.k >= kNarrowDepth * least && g.a.column == 1 && g.b.row == 1;
}

template <class T>
void narrow(const Gemm<T>& g) {
  if (measuring()) return;
  const bool few_rows = g.m <= g.n;
  const MatrixView<T> few = few_rows ? g.a : transposed(g.b), many = few_rows ? transposed(g.b) : g.a;
  const int64_t size = few_rows ? g.n : g.m, row_bytes = static_cast<int64_t>(sizeof(T)) * g.k;
  const double work = static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.k);
  const int64_t chunks = std::max({int64_t{1}, static_cast<int64_t>(work / kTileWork),
                                   size / std::max<int64_t>(1, kStreamBytes / row_bytes)}),
                grain = ceil_div(ceil_div(size, chunks), 8) * 8;
  const int64_t c_row = few_rows ? 1 : g.c_row, c_column = few_rows ? g.c_row : 1;
  parallel_range(size, grain, [&](int64_t begin, int64_t end) {
    gemm_kernels<T>().narrow({end - begin, few_rows ? g.m : g.n, g.k, many.data + begin * many.row, many.row,
                              few.data, few.row, g.c + begin * c_row, c_row, c_column, g.alpha,
                              g.accumulate});
  });
}

// A small one is no better off so where tiles need not pack.
template <class T>
bool is_thin(const Gemm<T>& g) {
  const int64_t least = std::min(g.m, g.n), most = std::max(g.m, g.n);
  return least <= kThin && (g.b.column != 1 || most > kThinSize || g.k > kThinSize / most);
}

// Those without tiles: nothing to add up, thin or narrow.
template <class T>
bool is_special(const Gemm<T>& g) {
  return g.m == 0 || g.n == 0 || g.k == 0 || (kGroup<T> == 1 && (is_thin(g) || is_narrow(g)));
}

template <class T>
void run_special(const Gemm<T>& g) {
  if (g.m == 0 || g.n == 0) return;
  if (g.k == 0 || g.start) begin(g);
  if (g.k == 0) return;
  Gemm<T> rest = g;
  if (g.start) rest.accumulate = true;
  rest.start = nullptr;
  if constexpr (kGroup<T> == 1) is_narrow(rest) ? narrow(rest) : thin(rest);
}

// A matrix and its transpose. (While a call is measured, all data is at one address: both ways are measured where the
// strides are those of such a product.)
template <class T>
bool is_mirrored(const Gemm<T>& g) {
  return g.m == g.n && g.m >= kMirrored && g.a.data == g.b.data && g.a.row == g.b.column &&
         g.a.column == g.b.row && !g.accumulate && !g.start && !is_special(g);
}

template <class T>
void run(const Gemm<T>& g);

// The last part has up to twice as many rows: few rows would be summed in another order.
int64_t end_of_part(int64_t begin, int64_t n) {
  return n - begin < 2 * kMirroredRows ? n : begin + kMirroredRows;
}

template <class T>
void mirror(T* c, int64_t row, int64_t n) {
  const auto transpose = move_table().transpose[width_index(dtype_of<T>())];
  for (int64_t i = 0, end = end_of_part(0, n); end < n; i = end, end = end_of_part(i, n))
    transpose(c + i * row + end, row, end - i, n - end, c + end * row + i, row);
}

template <class T>
void run_mirrored(const Gemm<T>& g) {
  for (int64_t i = 0, end; i < g.n; i = end) {
    end = end_of_part(i, g.n);
    Gemm<T> part = g;
    part.m = end - i;
    part.n = g.n - i;
    part.a.data += i * g.a.row;
    part.b.data += i * g.b.column;
    if (g.c) part.c += i * g.c_row + i;
    if (g.rounded) part.rounded += i * g.rounded_row + i;
    run(part);
  }
  if (measuring()) return;
  if (g.rounded)
    mirror(g.rounded, g.rounded_row, g.n);
  else
    mirror(g.c, g.c_row, g.n);
}

template <class T>
void run(const Gemm<T>& g) {
  if (is_special(g)) return run_special(g);
  if (is_mirrored(g)) {
    run_mirrored(g);
    if (!measuring()) return;
  }
  const Plan<T> plan(g);
  if constexpr (kGroup<T> == 1)
    if (is_one_block(g, plan)) {
      if (!measuring()) plan.kernel.block(one_block(g, plan));
      return;
    }
  run_tiles(g, plan);
}

// A small B whose rows are not contiguous is copied for each product of a batch.
template <class T>
bool is_copied(const Gemm<T>& g) {
  return g.b.column != 1 && g.n <= kCopied && g.k <= kCopied && g.n * g.k <= kCopied;
}
template <class T>
Gemm<T> with_copied(Gemm<T> g) {
  g.b = {g.b.data, g.n, 1};
  return g;
}

// Small products of a batch, each by one call of the kernel.
template <class T>
void run_blocks(const Gemm<T>& first, const Plan<T>& plan, std::span<const BatchOffsets> offsets,
                int64_t grain) {
  const bool copies = is_copied(first);
  const GemmBlock<T> block = one_block(copies ? with_copied(first) : first, plan);
  parallel_range(static_cast<int64_t>(offsets.size()), grain, [&](int64_t begin, int64_t end) {
    GemmBlock<T> x = block;
    T copy[kCopied];
    for (int64_t i = begin; i < end; ++i) {
      const BatchOffsets& at = offsets[static_cast<size_t>(i)];
      const T* const b = first.b.data + at.b;
      for (int64_t j = 0; copies && j < first.n; ++j)
        for (int64_t l = 0; l < first.k; ++l) copy[l * first.n + j] = b[l * first.b.row + j * first.b.column];
      x.a = block.a + at.a;
      x.b = copies ? copy : b;
      x.c = block.c + at.c;
      plan.kernel.block(x);
    }
  });
}

template <class T>
Gemm<T> product_at(Gemm<T> g, const BatchOffsets& at) {
  g.a.data += at.a;
  g.b.data += at.b;
  if (g.c) g.c += at.c;
  if (g.rounded) g.rounded += at.c;
  return g;
}

// Whether the products of a batch are run one after the other, each in parallel.
template <class T>
bool are_parallel_within(const Gemm<T>& g, int64_t count) {
  const auto m = static_cast<double>(g.m), n = static_cast<double>(g.n), k = static_cast<double>(g.k);
  const double bytes = sizeof(T) * (m * k + k * n) + sizeof(typename Gemm<T>::Sum) * m * n;
  return m * n * k > kParallelWork && (bytes > kNearProduct || count < kEnoughProducts * loop_threads());
}

template <class T>
void run_batch(const Gemm<T>& first, std::span<const BatchOffsets> offsets) {
  if (first.m == 0 || first.n == 0) return;
  const bool special = is_special(first),
             mirrored = is_mirrored(first) &&
                        (measuring() || std::ranges::all_of(offsets, [](auto&at) { return at.a == at.b; }));
  std::optional<Plan<T>> plan;
  if (!special) plan.emplace(first);
  const int64_t count = static_cast<int64_t>(offsets.size());
  const auto one = [&](int64_t i) {
    const Gemm<T> g = measuring() ? first : product_at(first, offsets[static_cast<size_t>(i)]);
    if (special) return run_special(g);
    if (mirrored) run_mirrored(g);
    if (!mirrored || measuring()) run_tiles(g, *plan);
  };
  if (are_parallel_within(first, count)) {
    for (int64_t i = 0; i < (measuring() ? std::min<int64_t>(count, 1) : count); ++i) one(i);
    return;
  }
  const double work =
      static_cast<double>(first.m) * static_cast<double>(first.n) * static_cast<double>(first.k);
  const int64_t grain = std::max<int64_t>(1, static_cast<int64_t>(kTileWork / std::max(work, 1.0)));
  if constexpr (kGroup<T> == 1)
    if (plan && !mirrored) {
      const Plan<T> in_place = is_copied(first) ? Plan<T>(with_copied(first)) : *plan;
      if (is_one_block(first, in_place)) return run_blocks(first, in_place, offsets, grain);
    }
  const int64_t chunks = ceil_div(count, grain);
  const ScratchRoom room(measure_chunk(chunks, [&] { one(0); }), chunks);
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
bool sums_in_parts(int64_t k) { return k > 0 && block_depth<BFloat16>(k) < k; }
bool multiplies_bfloat16(int64_t m, int64_t n) { return has_bfloat16() && std::min(m, n) > kThin; }
void gemm_batched(const Gemm<float>& first, std::span<const BatchOffsets> offsets) {
  run_batch(first, offsets);
}
void gemm_batched(const Gemm<double>& first, std::span<const BatchOffsets> offsets) {
  run_batch(first, offsets);
}
#if defined(__x86_64__)
void gemm(const Gemm<BFloat16>& product) { run(product); }
void gemm_batched(const Gemm<BFloat16>& first, std::span<const BatchOffsets> offsets) {
  run_batch(first, offsets);
}
#endif

float dot(const float* x, int64_t x_step, const float* y, int64_t y_step, int64_t n) {
  return run_dot(x, x_step, y, y_step, n);
}
double dot(const double* x, int64_t x_step, const double* y, int64_t y_step, int64_t n) {
  return run_dot(x, x_step, y, y_step, n);
}

}  // namespace retrograd::cpu
