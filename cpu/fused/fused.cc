// Runs a fused group on all threads: see cpu/fused/fused.h.
//
// CpuFusedKernel owns the program. compute() picks one of four ways to traverse the iteration space: ranges of
// elements if nothing is reduced; whole rows that fit into a tile; longer rows in chunks of kChunk elements, each of
// which produces Partials (ChunkReducer); columns in blocks of rows and strips of columns (ColumnPanels).
//
// Invariant: cuts depend only on sizes and are those of the reduction kernels, so that a group returns the same bits
// as its ops one by one, with any number of threads. Start reading at CpuFusedKernel::compute.
#include "cpu/fused/fused.h"

#include <algorithm>
#include <bit>

#include "cpu/fused/fused_tile.h"
#include "cpu/kernels/row_access.h"
#include "cpu/parallel.h"
#include "cpu/scratch_check.h"

namespace retrograd::inline v0::cpu {
namespace {

constexpr int64_t kLeastStrip = 512;  // columns summed at once; less of a row is too short a stream
constexpr int64_t kPanel = 4096;      // elements of some rows of them, which a near cache still holds
constexpr int64_t kLine = 64;         // elements: no register crosses a cache line

// Elements per chunk of a parallel loop: fewer for a longer program, more for large tensors, which then come from
// memory in long streams.
int64_t grain_of(const FusedProgram& p) {
  constexpr int64_t kChunks = 128, kMostGrains = 16;
  const int64_t grain =
      kRowGrain / std::clamp<int64_t>(static_cast<int64_t>(p.code.size()) / 2, 1, 8) / kLine * kLine;
  return std::clamp(p.numel / kChunks / kChunk * kChunk, grain, kMostGrains * grain);
}

// Memory for the kept values of a panel, for each thread.
class Kept {
 public:
  Kept(const FusedProgram& p, int64_t elements, int64_t chunks)
      : item_(elements * (std::ranges::count(p.kept_wide, true) > 0 ? 8 : 4)),
        memory_(item_ * static_cast<int64_t>(p.kept_wide.size()), chunks) {}
  void give(FusedTiles& tiles, const FusedProgram& p, int64_t offset = 0) const {
    for (size_t k = 0; k < p.kept_wide.size(); ++k)
      tiles.set_kept(static_cast<int>(k), at(static_cast<int>(k)) + offset * (p.kept_wide[k] ? 8 : 4));
  }
  char* at(int k) const { return memory_.mine() + k * item_; }

 private:
  int64_t item_;
  ThreadScratch<char> memory_;
};

void store_result(const FusedRun& run, const FusedReduction& r, int64_t row, double value) {
  dispatch(r.dtype, [&]<class D>(std::type_identity<D>) {
    reinterpret_cast<D*>(run.outputs[static_cast<size_t>(r.output)])[row] = convert<D>(value);
  });
}

template <class F>
void with_width(bool wide, F&& f) {
  if (wide)
    f(std::type_identity<double>{});
  else
    f(std::type_identity<float>{});
}

// Rows that fit into a tile: each is reduced as a whole.
void reduce_short_rows(const FusedRun& run) {
  const FusedProgram& p = run.program;
  const int64_t n = p.columns;
  const int64_t most = std::max<int64_t>(1, grain_of(p) / n);
  parallel_range(p.rows, even_grain(p.rows, most), [&](int64_t begin, int64_t end) {
    FusedTiles tiles(run, end * n);
    tiles.range(begin * n, end * n, [&](int64_t at, int64_t count) {
      for (const FusedReduction& r : p.reductions)
        with_width(r.wide, [&]<class T>(std::type_identity<T>) {
          const T* x = static_cast<const T*>(tiles.at(r.slot));
          for (int64_t row = at / n; row < (at + count) / n; ++row, x += n) {
            Partial<double> found;
            reduce_table<T>().reduce(x, n, r.row->kind, 0, &found);
            store_result(run, r, row, r.row->value(found, n));
          }
        });
    });
  });
}

// A chunk of a longer row, tile by tile.
class ChunkReducer {
 public:
  explicit ChunkReducer(const FusedProgram& p) : p_(p), lanes_(p.reductions.size()) {}

  /// Elements [begin, end) of the iteration space; of reduction k, found[k].
  void run(FusedTiles& tiles, int64_t begin, int64_t end, Partial<double>* found) {
    for_each([&]<class T>(const FusedReduction& r, T* lanes, size_t) {
      reduce_table<T>().begin_pieces(r.row->kind, lanes);
    });
    tiles.range(begin, end, [&](int64_t, int64_t count) {
      for_each([&]<class T>(const FusedReduction& r, T* lanes, size_t) {
        reduce_table<T>().add_piece(static_cast<const T*>(tiles.at(r.slot)), count, r.row->kind, lanes);
      });
    });
    for_each([&]<class T>(const FusedReduction& r, T* lanes, size_t k) {
      reduce_table<T>().end_pieces(lanes, r.row->kind, &found[k]);
    });
  }

 private:
  struct Lanes {
    alignas(64) float f32[kPieceLanes];
    alignas(64) double f64[kPieceLanes];
  };

  template <class F>
  void for_each(const F& f) {
    for (size_t k = 0; k < lanes_.size(); ++k)
      if (p_.reductions[k].wide)
        f(p_.reductions[k], lanes_[k].f64, k);
      else
        f(p_.reductions[k], lanes_[k].f32, k);
  }

  const FusedProgram& p_;
  std::vector<Lanes> lanes_;
};

// Rows of one or several chunks, whose results are merged in order.
void reduce_long_rows(const FusedProgram& p, const FusedRun* run) {
  const int64_t n = p.columns, chunks = (n + kChunk - 1) / kChunk;
  const auto count = static_cast<int64_t>(p.reductions.size());
  const Scratch<Partial<double>> found(p.rows * chunks * count);
  if (measuring()) return;
  const int64_t grain = std::max<int64_t>(1, grain_of(p) / std::min(n, kChunk));
  parallel_range(p.rows * chunks, grain, [&](int64_t begin, int64_t end) {
    const auto first = [&](int64_t task) { return task / chunks * n + task % chunks * kChunk; };
    FusedTiles tiles(*run, first(end));
    ChunkReducer reducer(p);
    for (int64_t task = begin; task < end; ++task) {
      const int64_t from = first(task);
      std::fill_n(&found[task * count], count, Partial<double>{});  // not all kinds set all of it
      reducer.run(tiles, from, std::min(from + kChunk, (task / chunks + 1) * n), &found[task * count]);
    }
  });
  for (int64_t row = 0; row < p.rows; ++row)
    for (int64_t k = 0; k < count; ++k) {
      const FusedReduction& r = p.reductions[static_cast<size_t>(k)];
      Partial<double>* first = &found[row * chunks * count + k];
      for (int64_t i = 1; i < chunks; ++i) merge_partials(r.row->kind, *first, first[i * count]);
      store_result(*run, r, row, r.row->value(*first, n));
    }
}

// Columns: blocks of rows as in cpu/kernels/reduce_columns.cc, of which one panel of some rows at a time is computed
// and added to the sums. Either all reductions are of converted dtypes, or none is.
class ColumnPanels {
 public:
  ColumnPanels(const FusedProgram& p, const FusedRun* run)
      : run_(run),
        p_(p),
        block_(column_block(p_.columns)),
        blocks_(ceil_div(p_.rows, block_)),
        strip_(strip_of(p_.columns, blocks_)),
        strips_(ceil_div(p_.columns, strip_)),
        panel_(std::clamp(kPanel / strip_ / kSumStep * kSumStep, kSumStep, kSumRows)),
        sums_(blocks_ * p_.columns * reductions()),
        running_(strip_ * reductions(), blocks_ * strips_),
        kept_(p_, std::min(panel_, p_.rows) * strip_, blocks_ * strips_) {}

  void run() const {
    if (measuring()) return;
    parallel_for(blocks_ * strips_,
                 [&](int64_t task) { add_block(task / strips_, task % strips_ * strip_); });
    for (size_t k = 0; k < p_.reductions.size(); ++k)
      parallel_range(p_.columns, kMerged, [&](int64_t begin, int64_t end) { merge(k, begin, end); });
  }

 private:
  static constexpr int64_t kMerged = 2048;  // columns whose sums a chunk merges

  struct RowRange {
    int64_t begin, end;
  };
  struct Strip {
    int64_t first, count;
  };

  // Whole rows if there are enough blocks for all threads. No strip extends over two strips of the kernel.
  static int64_t strip_of(int64_t columns, int64_t blocks) {
    const int64_t strips = ceil_div(2 * loop_threads(), std::max<int64_t>(1, blocks)),
                  even = ceil_div(columns, strips * kLine) * kLine,
                  strip = std::clamp(even, kLeastStrip, kColumnStrip);
    if (columns <= kColumnStrip) return std::min(columns, strip);
    return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(strip)));
  }
  int64_t reductions() const { return static_cast<int64_t>(p_.reductions.size()); }
  double* sums(size_t reduction, int64_t block) const {
    return sums_.data() + (static_cast<int64_t>(reduction) * blocks_ + block) * p_.columns;
  }
  // The running sums of this thread, in the type that the reduction computes in.
  double* running(size_t reduction) const {
    return running_.mine() + static_cast<int64_t>(reduction) * strip_;
  }

  // The sums of all blocks of the columns [begin, end), and their results.
  void merge(size_t reduction, int64_t begin, int64_t end) const {
    double* const total = sums(reduction, 0);
    for (int64_t block = 1; block < blocks_; ++block) {
      const double* const more = sums(reduction, block);
      for (int64_t j = begin; j < end; ++j) total[j] += more[j];
    }
    const FusedReduction& r = p_.reductions[reduction];
    dispatch(r.dtype, [&]<class D>(std::type_identity<D>) {
      D* const out = reinterpret_cast<D*>(run_->outputs[static_cast<size_t>(r.output)]);
      for (int64_t j = begin; j < end; ++j) {
        Partial<double> found;
        found.value = total[j];
        out[j] = convert<D>(r.row->value(found, p_.rows));
      }
    });
  }

  void add_block(int64_t block, int64_t first) const {
    const Strip strip{first, std::min(strip_, p_.columns - first)};
    const int64_t end = std::min(p_.rows, (block + 1) * block_);
    FusedTiles tiles(*run_, strip.count == p_.columns ? end * p_.columns : 0);
    for (size_t k = 0; k < p_.reductions.size(); ++k) std::fill_n(sums(k, block) + first, strip.count, 0.0);
    // Rows are cut where the kernel of a converted dtype would cut them.
    const int64_t piece =
        column_piece(std::min(kColumnStrip, p_.columns - first / kColumnStrip * kColumnStrip));
    const bool converted = std::ranges::any_of(
        p_.reductions, [](const FusedReduction& r) { return r.dtype != kFloat32 && r.dtype != kFloat64; });
    int64_t cut = block * block_;
    for (int64_t row = block * block_; row < end;) {
      if (row == cut) cut = converted ? std::min(end, cut + piece) : end;
      const RowRange rows{row, std::min(row + kSumRows, cut)};
      sum_rows(tiles, rows, strip);
      for (size_t k = 0; k < p_.reductions.size(); ++k) into_double(k, sums(k, block) + first, strip.count);
      row = rows.end;
    }
  }

  // Adds rows to the running sums, panel by panel.
  void sum_rows(FusedTiles& tiles, RowRange rows, Strip strip) const {
    std::fill_n(running_.mine(), strip_ * reductions(), 0.0);
    for (int64_t row = rows.begin; row < rows.end; row += panel_) {
      const RowRange panel{row, std::min(row + panel_, rows.end)};
      compute(tiles, panel, strip);
      for (size_t k = 0; k < p_.reductions.size(); ++k) add_panel(k, panel, strip);
    }
  }

  void compute(FusedTiles& tiles, RowRange rows, Strip strip) const {
    const int64_t width = strip.count;
    kept_.give(tiles, p_);
    if (width == p_.columns) return tiles.range(rows.begin * width, rows.end * width);
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      kept_.give(tiles, p_, (row - rows.begin) * width);
      const int64_t begin = row * p_.columns + strip.first;
      tiles.range(begin, begin + width);
    }
  }

  void add_panel(size_t k, RowRange rows, Strip strip) const {
    const FusedReduction& r = p_.reductions[k];
    const bool is_kept = r.slot >= p_.first_kept();
    const auto output = static_cast<size_t>(r.slot - p_.first_output());
    const char* x =
        is_kept ? kept_.at(r.slot - p_.first_kept())
                : run_->outputs[output] + (rows.begin * p_.columns + strip.first) * p_.output_items[output];
    const int64_t stride = is_kept ? strip.count : p_.columns;
    with_width(r.wide, [&]<class T>(std::type_identity<T>) {
      reduce_table<T>().add_rows(reinterpret_cast<const T*>(x), rows.end - rows.begin, stride, strip.count,
                                 reinterpret_cast<T*>(running(k)));
    });
  }

  void into_double(size_t k, double* sums, int64_t columns) const {
    with_width(p_.reductions[k].wide, [&]<class T>(std::type_identity<T>) {
      const T* from = reinterpret_cast<const T*>(running(k));
      for (int64_t j = 0; j < columns; ++j) sums[j] += static_cast<double>(from[j]);
    });
  }

  const FusedRun* run_;
  const FusedProgram& p_;
  int64_t block_, blocks_, strip_, strips_, panel_;  // rows, columns, rows
  Scratch<double> sums_;
  ThreadScratch<double> running_;
  Kept kept_;
};

class CpuFusedKernel final : public FusedKernel {
 public:
  explicit CpuFusedKernel(FusedProgram program) : program_(std::move(program)) {}

  int64_t scratch_bytes() const override {
    return program_.reduces == FusedRole::none || program_.numel == 0
               ? 0
               : measure_scratch([&] { compute(nullptr); });
  }

  void run(TensorImpl* const* inputs, TensorImpl* const* outputs, const void* const* attrs,
           std::span<std::byte> scratch) const override {
    if (program_.numel == 0) return;
    const FusedRun run(program_, inputs, outputs, attrs);
    if (scratch_is_checked.load(std::memory_order_relaxed)) [[unlikely]]
      return run_checked("a fused group", scratch_bytes(), [&] { compute(&run); });
    const ScratchArea area(scratch);
    compute(&run);
  }

  bool may_overwrite(int input, int output) const override {
    const auto o = static_cast<size_t>(output);
    return program_.output_items[o] > 0 &&
           program_.last_read[static_cast<size_t>(input)] <= program_.written[o];
  }

 private:
  // The run may be null while the group is measured.
  void compute(const FusedRun* run) const {
    if (program_.reduces == FusedRole::reduce_columns) return ColumnPanels(program_, run).run();
    if (program_.reduces == FusedRole::reduce_rows) {
      if (program_.columns > most_tile(program_)) return reduce_long_rows(program_, run);
      if (!measuring()) reduce_short_rows(*run);
      return;
    }
    parallel_range(program_.numel, even_grain(program_.numel, grain_of(program_), kLine),
                   [&](int64_t begin, int64_t end) { FusedTiles(*run, end).range(begin, end); });
  }

  FusedProgram program_;
};

}  // namespace

std::unique_ptr<FusedKernel> fuse_group(const FusedGroup& group, const KernelTable& table) {
  std::optional<FusedProgram> program = make_program(group, table);
  if (!program) return nullptr;
  return std::make_unique<CpuFusedKernel>(*std::move(program));
}

}  // namespace retrograd::cpu
