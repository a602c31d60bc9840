// Sweeps as matrix products: features x (channels, kernel's places) times (channels, kernel's places) x
// results.
//
// The weight is packed into row panels once. The results of all samples, as one sequence, are cut into tiles of
// columns. For a tile, the input of its results is copied ("im2col") into a strip with a row for each channel and
// place of the kernel, some channels at a time, and all features of the group are multiplied with the strip by the
// register tiles of cpu/gemm/levels/gemm_kernels.h. A strip stays in the second-level cache; the full matrix of
// columns never exists. Its rows are an odd number of cache lines apart, so that a column panel is not mapped to few
// sets of the first-level cache.
//
// A kernel of one place with stride 1 needs no special case: its strips are plain copies of pieces of the input, at
// the cost of packing a factor of a product.
#include <span>

#include "cpu/gemm/levels/gemm_kernels.h"
#include "cpu/kernels/convolution.h"
#include "cpu/parallel.h"
#include "cpu/scratch.h"

namespace retrograd::inline v0::cpu {
namespace {

constexpr int64_t kDepth = 256;             // rows of a strip, if a channel has no more
constexpr int64_t kRowBytes = 1024;         // of a row of a strip, without the gap
constexpr int64_t kLineBytes = 64;          // the gap
constexpr int64_t kTileStripBytes = 512 << 10;  // of a strip, if it has that many rows that rows must be shorter
constexpr int64_t kTileChunkWork = 1 << 19;     // multiplications of a chunk, at least
constexpr int64_t kTileChunks = 16;  // number of tiles that is aimed at; at half of it, features are split, too
constexpr int64_t kPartPanels = 4;  // row panels of a part of the features, at least

// Integer arithmetic wraps around.
void integer_block(const GemmBlock<int64_t>& x) {
  constexpr int64_t rows = 4, columns = 8;
  for (int64_t j = 0; j < x.n; j += columns) {
    const int64_t* b = x.b + j / columns * x.b_panel;
    for (int64_t i = 0; i < x.m; ++i) {
      const int64_t* a = x.a + i / rows * x.a_panel + i % rows * x.a_row;
      uint64_t sum[columns] = {};
      for (int64_t l = 0; l < x.k; ++l)
        for (int64_t q = 0; q < columns; ++q)
          sum[q] += static_cast<uint64_t>(a[l * x.a_column]) * static_cast<uint64_t>(b[l * x.b_row + q]);
      int64_t* c = x.c + i * x.c_row + j;
      for (int64_t q = 0; q < std::min(columns, x.n - j); ++q)
        c[q] = static_cast<int64_t>(sum[q] + static_cast<uint64_t>(x.accumulate ? c[q] : 0));
    }
  }
}

void integer_pack(const int64_t* x, int64_t across, int64_t along, int64_t count, int width, int64_t k,
                  int64_t* out, int64_t panel) {
  for (int64_t first = 0; first < count; first += width, out += panel)
    for (int64_t l = 0; l < k; ++l)
      for (int64_t i = 0; i < width; ++i)
        out[l * width + i] = first + i < count ? x[(first + i) * across + l * along] : 0;
}

constexpr GemmKernels<int64_t> kIntegerKernels{.rows = 4,
                                               .columns = 8,
                                               .row_panels = 28,
                                               .column_panels = 48,
                                               .block = integer_block,
                                               .pack = integer_pack};

template <class T>
const GemmKernels<T>& block_kernels() {
  if constexpr (std::is_same_v<T, int64_t>)
    return kIntegerKernels;
  else
    return gemm_kernels<T>();
}

template <class T>
class SweepTiles {
 public:
  SweepTiles(const Sweep& s, const SweepData<T>& data)
      : s_(s),
        data_(data),
        taps_(s.taps()),
        strip_channels_(std::clamp<int64_t>(kDepth / std::max<int64_t>(taps_, 1), 1,
                                            std::max<int64_t>(s.in_channels, 1))),
        columns_(tile_columns()),
        pitch_(columns_ + kLineBytes / kElement),
        panels_(ceil_div(s.out_channels, kernel_.rows)),
        weight_(s.groups * panels_ * kernel_.rows * s.in_channels * taps_) {}

  void run() const {
    pack();
    const int64_t tiles = ceil_div(s_.batch * s_.grid(), columns_), blocks = tiles * s_.groups;
    const int64_t most = ceil_div(panels_, kPartPanels);
    const int64_t parts =
        blocks >= kTileChunks / 2 ? 1 : std::min(most, ceil_div(kTileChunks, std::max<int64_t>(blocks, 1)));
    const int64_t part_panels = ceil_div(panels_, parts);
    const int64_t work = part_panels * kernel_.rows * columns_ * std::max<int64_t>(s_.in_channels * taps_, 1);
    const int64_t grain = std::max<int64_t>(1, kTileChunkWork / work),
                  chunks = ceil_div(parts * blocks, grain);
    const ThreadScratch<ConvolutionRun> runs(columns_, chunks);
    const ThreadScratch<T> strip(strip_channels_ * taps_ * pitch_, chunks),
        c(part_panels * kernel_.rows * pitch_, chunks);
    parallel_range(parts * blocks, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = i / blocks * part_panels;
        if (first < panels_)
          compute({i / tiles % s_.groups, first, std::min(part_panels, panels_ - first), i % tiles},
                  {runs.mine(), strip.mine(), c.mine()});
      }
    });
  }

 private:
  static constexpr int64_t kElement = static_cast<int64_t>(sizeof(T));

  struct Tile {
    int64_t group, panel, panels, number;
  };
  struct Buffers {
    ConvolutionRun* runs;
    T *strip, *c;
  };

  // As many as fit, but fewer, down to two panels, if that leaves too few tiles.
  int64_t tile_columns() const {
    const int64_t fitting = kTileStripBytes / kElement / std::max<int64_t>(strip_channels_ * taps_, 1);
    const int64_t most = std::min(fitting, kRowBytes / kElement) / kernel_.columns,
                  fair = s_.batch * s_.grid() * s_.groups / kTileChunks / kernel_.columns;
    return std::clamp<int64_t>(std::min(most, std::max<int64_t>(fair, 2)), 1, kRowBytes / kElement) *
           kernel_.columns;
  }

  // The panels of a strip's channels are consecutive, each a group of `rows` elements per row of the strip.
  T* packed(int64_t group, int64_t panel, int64_t channel, int64_t channels) const {
    const int64_t before = (group * s_.in_channels + channel) * panels_ + panel * channels;
    return weight_.data() + before * taps_ * kernel_.rows;
  }

  void pack() const {
    const int64_t panel_size = s_.in_channels * taps_ * kernel_.rows;
    const int64_t grain = std::max<int64_t>(1, kTileChunkWork / 32 / std::max<int64_t>(panel_size, 1));
    parallel_range(s_.groups * panels_, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        for (int64_t c = 0; c < s_.in_channels; c += strip_channels_)
          pack_panel(i / panels_, i % panels_, c, std::min(strip_channels_, s_.in_channels - c));
    });
  }

  void pack_panel(int64_t group, int64_t panel, int64_t channel, int64_t channels) const {
    const int64_t first = panel * kernel_.rows,
                  count = std::min<int64_t>(kernel_.rows, s_.out_channels - first);
    const T* from = data_.weight + group * s_.in_channels * s_.out_channels * s_.kernel() +
                    first * data_.weight_out + channel * data_.weight_in;
    T* to = packed(group, panel, channel, channels);
    const auto put = [&](const T* x, int64_t along, int64_t k) {
      kernel_.pack(x, data_.weight_out, along, count, kernel_.rows, k, to, 0);
      to += k * kernel_.rows;
    };
    if (s_.natural() && data_.weight_in == taps_) return put(from, 1, channels * taps_);
    const SweepAxis(&a)[3] = s_.axis;
    for (int64_t c = 0; c < channels; ++c, from += data_.weight_in) {
      if (s_.natural()) {
        put(from, 1, taps_);
        continue;
      }
      for (int64_t z = 0; z < a[0].taps; ++z)
        for (int64_t y = 0; y < a[1].taps; ++y) {
          const int64_t line = (a[0].tap + z * a[0].tap_step) * a[1].kernel + a[1].tap + y * a[1].tap_step;
          put(from + line * a[2].kernel + a[2].tap, a[2].tap_step, a[2].taps);
        }
    }
  }

  void compute(const Tile& tile, const Buffers& buffers) const {
    const int64_t begin = tile.number * columns_, end = std::min(begin + columns_, s_.batch * s_.grid());
    const int64_t runs = make_runs(s_, begin, end, buffers.runs);
    const int64_t row = tile.panel * kernel_.rows;
    GemmBlock<T> x{};
    x.m = std::min(tile.panels * kernel_.rows, s_.out_channels - row);
    x.n = end - begin;
    x.a_row = 1;
    x.a_column = kernel_.rows;
    x.b = buffers.strip;
    x.b_panel = kernel_.columns;
    x.b_row = x.c_row = pitch_;
    x.b_padded = true;
    x.c = buffers.c;
    x.alpha = 1;
    if (s_.in_channels * taps_ == 0) std::fill_n(x.c, x.m * pitch_, T(0));
    for (int64_t c = 0; c < s_.in_channels && taps_ > 0; c += strip_channels_) {
      const int64_t channels = std::min(strip_channels_, s_.in_channels - c);
      fill_strip(tile.group * s_.in_channels + c, channels, {buffers.runs, static_cast<size_t>(runs)},
                 buffers.strip);
      x.k = channels * taps_;
      x.a = packed(tile.group, tile.panel, c, channels);
      x.a_panel = x.k * kernel_.rows;
      x.accumulate = c > 0;
      kernel_.block(x);
    }
    for (int64_t i = 0; i < x.m; ++i) {
      const int64_t channel = tile.group * s_.out_channels + row + i;
      copies_.store(x.c + i * pitch_, buffers.runs, runs, data_.bias ? data_.bias[channel] : T(0),
                    s_.axis[2].step, data_.out + channel * s_.out_plane());
    }
  }

  void fill_strip(int64_t channel, int64_t channels, std::span<const ConvolutionRun> runs, T* strip) const {
    const int64_t size[3] = {s_.axis[0].in, s_.axis[1].in, s_.axis[2].in};
    for (int64_t c = 0; c < channels; ++c) {
      const T* plane = data_.in + (channel + c) * s_.in_plane();
      for_taps(s_, [&](const int64_t* offset) {
        copies_.patch(plane, size, s_.axis[2].stride, runs.data(), static_cast<int64_t>(runs.size()), offset,
                      strip);
        strip += pitch_;
      });
    }
  }

  const Sweep& s_;
  const SweepData<T>& data_;
  const GemmKernels<T>& kernel_ = block_kernels<T>();
  const ConvolutionCopies<T>& copies_ = convolution_copies<T>();
  const int64_t taps_, strip_channels_, columns_, pitch_, panels_;
  const Scratch<T> weight_;
};

}  // namespace

template <class T>
void sweep_tiles(const Sweep& sweep, const SweepData<T>& data) {
  if (sweep.batch * sweep.grid() * sweep.out_channels > 0) SweepTiles<T>(sweep, data).run();
}
template void sweep_tiles(const Sweep&, const SweepData<float>&);
template void sweep_tiles(const Sweep&, const SweepData<double>&);
template void sweep_tiles(const Sweep&, const SweepData<int64_t>&);

}  // namespace retrograd::cpu
