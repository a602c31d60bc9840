// The weight's gradient as matrix products: (channels, kernel's places) x results times results x features.
//
// The sum runs over the results of all samples, as one sequence, in blocks. The gradient of a block is packed once
// into column panels. The input that the block reads of a few channels is copied into a strip with a row for each
// channel and place of the kernel, as for a sweep (convolution_tiles.cc), and here the strip is the left factor, read
// where it is. Chunks are pieces of the channels; if there are few, the blocks are distributed over parts with
// separate sums, which are added in order. The result is transposed at the end, since features are its rows.
#include <span>

#include "cpu/gemm/levels/gemm_kernels.h"
#include "cpu/kernels/convolution.h"
#include "cpu/parallel.h"
#include "cpu/scratch.h"

namespace retrograd::inline v0::cpu {
namespace {

constexpr int64_t kWeightStripRows = 128;                  // about, unless a channel has more
constexpr int64_t kWeightBlock = 256;                      // results in a block, at most
constexpr int64_t kShortBlock = 32;                  // and at least
constexpr int64_t kGapBytes = 64;                    // between rows of a strip
constexpr int64_t kWeightStripBytes = 256 << 10;           // from here on, blocks are made shorter
constexpr int64_t kPackedBytes = int64_t{32} << 20;  // of packed gradients: more blocks are done in slabs
constexpr int64_t kWeightChunks = 16;     // number of pieces below which blocks are dealt out to parts
constexpr int64_t kPartBlocks = 4;  // blocks of a part, at least
constexpr int64_t kTurn = 16;       // features turned at a time

template <class T>
class WeightTiles {
 public:
  WeightTiles(const Sweep& s, const T* in, const T* grad)
      : s_(s),
        in_(in),
        grad_(grad),
        taps_(s.taps()),
        rows_(s.in_channels * taps_),
        piece_(piece_channels()),
        block_(std::clamp(kWeightStripBytes / kElement / (piece_ * taps_), kShortBlock, kWeightBlock)),
        pitch_(block_ + kGapBytes / kElement),
        results_(s.batch * s.grid()),
        panels_(ceil_div(s.out_channels, kernel_.columns)),
        slab_(std::clamp<int64_t>(kPackedBytes / kElement / (s.groups * panels_ * kernel_.columns) / block_,
                                  1, std::max<int64_t>(ceil_div(results_, block_), 1))) {}

  void run(T* result) const {
    const int64_t blocks = ceil_div(results_, block_), pieces = s_.groups * ceil_div(s_.in_channels, piece_);
    const int64_t parts =
        std::clamp<int64_t>(ceil_div(kWeightChunks, pieces), 1, std::max<int64_t>(slab_ / kPartBlocks, 1));
    const Scratch<T> packed(s_.groups * slab_ * block_ * panels_ * kernel_.columns),
        sums(parts * s_.groups * rows_ * s_.out_channels);
    const ThreadScratch<ConvolutionRun> runs(block_, pieces * parts);
    const ThreadScratch<T> strips(piece_ * taps_ * pitch_, pieces * parts);
    if (measuring()) return;
    if (blocks < parts) std::fill_n(sums.data(), parts * s_.groups * rows_ * s_.out_channels, T(0));
    for (int64_t first = 0; first < blocks; first += slab_) {
      const Slab slab{first, std::min(slab_, blocks - first), packed.data()};
      pack(slab);
      parallel_for(pieces * parts, [&](int64_t i) {
        const int64_t part = i / pieces, group = i % s_.groups, channel = i % pieces / s_.groups * piece_;
        compute(slab, slab.blocks * part / parts, slab.blocks * (part + 1) / parts, group, channel,
                sums.data() + part * s_.groups * rows_ * s_.out_channels, {runs.mine(), strips.mine()});
      });
    }
    turn(sums.data(), parts, result);
  }

 private:
  static constexpr int64_t kElement = static_cast<int64_t>(sizeof(T));

  struct Slab {
    int64_t first, blocks;
    T* packed;
  };
  struct Buffers {
    ConvolutionRun* runs;
    T* strip;
  };

  // The number that leaves the fewest row panels empty.
  int64_t piece_channels() const {
    int64_t best = 1;
    const auto panels = [&](int64_t channels) { return ceil_div(channels * taps_, kernel_.rows); };
    for (int64_t c = 2; c <= s_.in_channels && c * taps_ <= kWeightStripRows; ++c)
      if (c * panels(best) >= best * panels(c)) best = c;
    return best;
  }

  // Of one block and group: column panels, each a row of `columns` features per result.
  T* packed(const Slab& slab, int64_t group, int64_t block) const {
    return slab.packed + (group * slab_ + block - slab.first) * block_ * panels_ * kernel_.columns;
  }

  void pack(const Slab& slab) const {
    parallel_for(s_.groups * slab.blocks, [&](int64_t i) {
      const int64_t group = i / slab.blocks, block = slab.first + i % slab.blocks;
      const int64_t begin = block * block_, end = std::min(begin + block_, results_);
      T* to = packed(slab, group, block);
      for (int64_t panel = 0; panel < panels_; ++panel)
        for (int64_t at = begin; at < end;) {
          const int64_t sample = at / s_.grid(), count = std::min((sample + 1) * s_.grid(), end) - at;
          const int64_t feature = panel * kernel_.columns;
          const T* from = grad_ + (sample * s_.groups + group) * s_.out_channels * s_.grid() +
                          feature * s_.grid() + at - sample * s_.grid();
          kernel_.pack(from, s_.grid(), 1, std::min<int64_t>(kernel_.columns, s_.out_channels - feature),
                       kernel_.columns, count, to, 0);
          to += count * kernel_.columns;
          at += count;
        }
    });
  }

  // Adds the blocks [begin, end) of the slab to the sums of one piece.
  void compute(const Slab& slab, int64_t begin, int64_t end, int64_t group, int64_t channel, T* sums,
               const Buffers& buffers) const {
    const int64_t channels = std::min(piece_, s_.in_channels - channel);
    GemmBlock<T> x{};
    x.m = channels * taps_;
    x.n = s_.out_channels;
    x.a = buffers.strip;
    x.a_panel = kernel_.rows * pitch_;
    x.a_row = pitch_;
    x.a_column = 1;
    x.b_row = kernel_.columns;
    x.b_padded = true;
    x.c = sums + (group * rows_ + channel * taps_) * s_.out_channels;
    x.c_row = s_.out_channels;
    x.alpha = 1;
    for (int64_t b = slab.first + begin; b < slab.first + end; ++b) {
      const int64_t first = b * block_;
      x.k = std::min(block_, results_ - first);
      const int64_t runs = make_runs(s_, first, first + x.k, buffers.runs);
      fill_strip(group * s_.in_channels + channel, channels, {buffers.runs, static_cast<size_t>(runs)},
                 buffers.strip);
      x.b = packed(slab, group, b);
      x.b_panel = kernel_.columns * x.k;
      x.accumulate = slab.first > 0 || b > slab.first + begin;
      kernel_.block(x);
    }
  }

  void fill_strip(int64_t channel, int64_t channels, std::span<const ConvolutionRun> runs, T* strip) const {
    const int64_t size[3] = {s_.axis[0].in, s_.axis[1].in, s_.axis[2].in};
    for (int64_t c = 0; c < channels; ++c)
      for_taps(s_, [&](const int64_t* offset) {
        copies_.patch(in_ + (channel + c) * s_.in_plane(), size, s_.axis[2].stride, runs.data(),
                      static_cast<int64_t>(runs.size()), offset, strip);
        strip += pitch_;
      });
  }

  // result[k][l] = the sum over parts of sums[part][l][k], for each group.
  void turn(const T* sums, int64_t parts, T* result) const {
    const int64_t features = s_.out_channels, part_size = s_.groups * rows_ * features;
    const int64_t across = ceil_div(features, kTurn);
    parallel_range(s_.groups * across, std::max<int64_t>(1, 32768 / (kTurn * rows_)),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t i = begin; i < end; ++i) {
                       const int64_t group = i / across, first = i % across * kTurn,
                                     last = std::min(first + kTurn, features);
                       const T* from = sums + group * rows_ * features;
                       T* to = result + group * rows_ * features;
                       for (int64_t k = first; k < last; ++k) {
                         for (int64_t l = 0; l < rows_; ++l) to[k * rows_ + l] = from[l * features + k];
                         for (int64_t p = 1; p < parts; ++p)
                           for (int64_t l = 0; l < rows_; ++l)
                             to[k * rows_ + l] += from[p * part_size + l * features + k];
                       }
                     }
                   });
  }

  const Sweep& s_;
  const T *in_, *grad_;
  const GemmKernels<T>& kernel_ = gemm_kernels<T>();
  const ConvolutionCopies<T>& copies_ = convolution_copies<T>();
  const int64_t taps_, rows_, piece_, block_, pitch_, results_, panels_, slab_;
};

}  // namespace

template <class T>
void weight_tiles(const Sweep& sweep, const T* in, const T* grad, T* result) {
  WeightTiles<T>(sweep, in, grad).run(result);
}
template void weight_tiles(const Sweep&, const float*, const float*, float*);
template void weight_tiles(const Sweep&, const double*, const double*, double*);

}  // namespace retrograd::cpu
