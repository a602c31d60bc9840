// Convolutions with few features per group, depthwise ones above all: sums over shifted lines.
//
// A register tile would be almost empty here. Instead, a band of lines of the results is computed from a staged copy
// of the input that the band reads: the input's lines with the zeros around them, and, when results are several
// places apart, each line split by the remainder of the place by the stride. In the copy every place of the kernel
// reads a dense line, at an offset that is the same for all lines of the band:
//   out[line][x] = bias + sum over c, t of weight[c, t] * staged[line * line_step + offset(c, t) + x],
// so that the inner loops have neither bounds nor strides. The weight's gradient uses the same offsets and
// sums over the lines of a band; the sums of bands are added in order.
#include <span>

#include "cpu/kernels/convolution.h"
#include "cpu/parallel.h"
#include "cpu/scratch.h"
#include "engine/symbols.h"

namespace retrograd::inline v0::cpu {
namespace {

constexpr int64_t kStagedBytes = 256 << 10;  // of a band, if it has more than one line
constexpr int64_t kChunkWork = 1 << 18;      // multiplications of a chunk, at least
constexpr int64_t kParts = 16;               // of the samples, for sums over all of them

// The layout of a staged band: [channel][place of the kernel in dim 0][line][remainder][x].
class Staging {
 public:
  Staging(const Sweep& s, int64_t channels, int64_t element)
      : s_(s), lines_axis_(s.axis[1]), x_axis_(s.axis[2]), channels_(channels) {
    width_ = x_axis_.grid + span(x_axis_) / x_axis_.stride;
    pitch_ = round_up(width_, kConvolutionPad) + kConvolutionPad;
    line_ = product({pitch_, std::min(x_axis_.stride, span(x_axis_) + 1)});
    const int64_t per_line = product({channels, s.axis[0].taps, lines_axis_.stride, line_, element});
    lines_ = std::clamp<int64_t>(kStagedBytes / std::max<int64_t>(per_line, 1), 1,
                                 std::max<int64_t>(lines_axis_.grid, 1));
    runs_ = product({s.axis[0].taps, staged_lines(lines_), line_ / pitch_});
    size_ = product({channels, runs_, pitch_});
    product({size_, element});
  }

  int64_t lines() const { return lines_; }  // of results, in a band
  int64_t bands() const { return s_.axis[0].grid * ceil_div(lines_axis_.grid, lines_); }
  int64_t line_step() const { return lines_axis_.stride * line_; }
  int64_t runs() const { return runs_; }
  int64_t size() const { return size_; }

  struct Band {
    int64_t z, y, lines;  // of the results
  };
  Band band(int64_t number) const {
    const int64_t across = ceil_div(lines_axis_.grid, lines_), y = number % across * lines_;
    return {number / across, y, std::min(lines_, lines_axis_.grid - y)};
  }

  /// Sets the offsets that each channel and place of the kernel reads for the first line of a band.
  void set_offsets(int64_t* offset) const {
    const SweepAxis(&a)[3] = s_.axis;
    const int64_t plane = staged_lines(lines_) * line_;
    for (int64_t c = 0; c < channels_; ++c)
      for (int64_t z = 0; z < a[0].taps; ++z)
        for (int64_t y = 0; y < a[1].taps; ++y)
          for (int64_t x = 0; x < a[2].taps; ++x) {
            const int64_t right = a[2].offset + x * a[2].offset_step - lowest(a[2]);
            *offset++ = (c * a[0].taps + z) * plane +
                        (a[1].offset + y * a[1].offset_step - lowest(a[1])) * line_ +
                        right % a[2].stride * pitch_ + right / a[2].stride;
          }
  }

  /// Copies the input that `band` of one sample reads of the channels from `in` on. `runs` has room for runs().
  template <class T>
  void stage(const Band& band, const T* in, ConvolutionRun* runs, T* staged) const {
    const int64_t lines = staged_lines(band.lines), remainders = line_ / pitch_;
    ConvolutionRun* run = runs;
    for (int64_t z = 0; z < s_.axis[0].taps; ++z)
      for (int64_t y = 0; y < lines; ++y)
        for (int64_t q = 0; q < remainders; ++q, ++run) {
          run->at[0] = band.z * s_.axis[0].stride + s_.axis[0].offset + z * s_.axis[0].offset_step;
          run->at[1] = band.y * lines_axis_.stride + lowest(lines_axis_) + y;
          run->at[2] = lowest(x_axis_) + q;
          run->from = (run->at[0] * lines_axis_.in + run->at[1]) * x_axis_.in + run->at[2];
          run->column = (z * staged_lines(lines_) + y) * line_ + q * pitch_;
          run->count = pitch_;
        }
    const int64_t size[3] = {s_.axis[0].in, lines_axis_.in, x_axis_.in}, none[3] = {};
    for (int64_t c = 0; c < channels_; ++c)
      convolution_copies<T>().patch(in + c * s_.in_plane(), size, x_axis_.stride, runs, run - runs, none,
                                    staged + c * this->runs() * pitch_);
  }

 private:
  // Throws Error if it does not fit into 63 bits: a dilation may be large in each of three dims.
  static int64_t product(std::initializer_list<int64_t> factors) {
    int64_t n = 1;
    for (int64_t factor : factors) n = Dim::checked_mul(n, factor);
    return n;
  }
  static int64_t span(const SweepAxis& a) {
    return std::max<int64_t>(a.taps - 1, 0) * std::abs(a.offset_step);
  }
  static int64_t lowest(const SweepAxis& a) {
    return a.offset + std::min<int64_t>(0, (a.taps - 1) * a.offset_step);
  }
  int64_t staged_lines(int64_t lines) const {
    return (lines - 1) * lines_axis_.stride + span(lines_axis_) + 1;
  }

  const Sweep& s_;
  const SweepAxis &lines_axis_, &x_axis_;
  int64_t channels_, width_, pitch_, line_, lines_, runs_, size_;
};

template <class T>
class SweepLines {
 public:
  SweepLines(const Sweep& s, const SweepData<T>& data)
      : s_(s), data_(data), staging_(s, s.in_channels, sizeof(T)), offset_(s.in_channels * s.taps()) {
    if (!measuring()) staging_.set_offsets(offset_.data());
  }

  void run() const {
    const int64_t bands = staging_.bands(), row = s_.axis[2].grid;
    const int64_t work =
        staging_.lines() * row * s_.out_channels * std::max<int64_t>(s_.in_channels * s_.taps(), 1);
    const int64_t grain = std::max<int64_t>(1, kChunkWork / std::max<int64_t>(work, 1));
    const int64_t tasks = s_.batch * s_.groups * bands, chunks = ceil_div(tasks, grain);
    const ThreadScratch<ConvolutionRun> all_runs(staging_.runs(), chunks);
    const ThreadScratch<T> all_staged(staging_.size() + kConvolutionPad, chunks), lines(row, chunks),
        weights(s_.in_channels * s_.taps(), chunks);
    parallel_range(tasks, grain, [&](int64_t begin, int64_t end) {
      ConvolutionRun* const runs = all_runs.mine();
      T *const staged = all_staged.mine(), *const weight = weights.mine();
      for (int64_t i = begin; i < end; ++i) {
        const int64_t group = i / bands % s_.groups, sample = i / bands / s_.groups;
        const Staging::Band band = staging_.band(i % bands);
        staging_.stage(band, data_.in + sample * s_.in_sample() + group * s_.in_channels * s_.in_plane(),
                       runs, staged);
        for (int64_t k = 0; k < s_.out_channels; ++k) {
          const int64_t channel = group * s_.out_channels + k;
          set_weight(group, k, weight);
          compute(band, channel, data_.out + sample * s_.out_sample() + channel * s_.out_plane(), staged,
                  weight, lines.mine());
        }
      }
    });
  }

 private:
  void set_weight(int64_t group, int64_t k, T* weight) const {
    const T* from =
        data_.weight + group * s_.in_channels * s_.out_channels * s_.kernel() + k * data_.weight_out;
    const SweepAxis(&a)[3] = s_.axis;
    for (int64_t c = 0; c < s_.in_channels; ++c, from += data_.weight_in)
      for (int64_t z = 0; z < a[0].taps; ++z)
        for (int64_t y = 0; y < a[1].taps; ++y) {
          const int64_t line = (a[0].tap + z * a[0].tap_step) * a[1].kernel + a[1].tap + y * a[1].tap_step;
          for (int64_t x = 0; x < a[2].taps; ++x)
            *weight++ = from[line * a[2].kernel + a[2].tap + x * a[2].tap_step];
        }
  }

  void compute(const Staging::Band& band, int64_t channel, T* out, const T* staged, const T* weight,
               T* line) const {
    const SweepAxis &y_axis = s_.axis[1], &x_axis = s_.axis[2];
    const T start = data_.bias ? data_.bias[channel] : T(0);
    const int64_t z = s_.axis[0].first + band.z * s_.axis[0].step;
    for (int64_t i = 0; i < band.lines; ++i) {
      const int64_t y = y_axis.first + (band.y + i) * y_axis.step;
      T* to = out + (z * y_axis.out + y) * x_axis.out + x_axis.first;
      T* result = x_axis.step == 1 ? to : line;
      taps_.combine(staged + i * staging_.line_step(), offset_.data(), weight, s_.in_channels * s_.taps(),
                    start, result, x_axis.grid);
      if (result == line)
        for (int64_t x = 0; x < x_axis.grid; ++x) to[x * x_axis.step] = line[x];
    }
  }

  const Sweep& s_;
  const SweepData<T>& data_;
  const ConvolutionTaps<T>& taps_ = convolution_taps<T>();
  const Staging staging_;
  const Scratch<int64_t> offset_;
};

// Each channel of the input gets its sums from one chunk per part of the samples.
template <class T>
class WeightLines {
 public:
  WeightLines(const Sweep& s, const T* in, const T* grad)
      : s_(s), in_(in), grad_(grad), taps_(s.taps()), staging_(s, 1, sizeof(T)), offset_(taps_) {
    if (!measuring()) staging_.set_offsets(offset_.data());
  }

  void run(T* result) const {
    const int64_t channels = s_.groups * s_.in_channels, sums = channels * s_.out_channels * taps_;
    const int64_t parts = std::clamp<int64_t>(ceil_div(kParts, std::max<int64_t>(channels, 1)), 1,
                                              std::max<int64_t>(s_.batch, 1));
    const int64_t work = ceil_div(s_.batch, parts) * s_.grid() * s_.out_channels * taps_;
    const int64_t grain = std::max<int64_t>(1, kChunkWork / std::max<int64_t>(work, 1));
    const int64_t chunks = ceil_div(parts * channels, grain);
    const Scratch<T> partial(parts * sums);
    const ThreadScratch<ConvolutionRun> runs(staging_.runs(), chunks);
    const ThreadScratch<T> staged(staging_.size() + kConvolutionPad, chunks),
        lines(staging_.lines() * round_up(s_.axis[2].grid, kConvolutionPad), chunks);
    if (measuring()) return;
    std::fill_n(partial.data(), parts * sums, T(0));
    parallel_range(parts * channels, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        compute(i % channels, i / channels * s_.batch / parts, (i / channels + 1) * s_.batch / parts,
                partial.data() + i / channels * sums, {runs.mine(), staged.mine(), lines.mine()});
    });
    for (int64_t i = 0; i < sums; ++i) {
      T total = 0;
      for (int64_t p = 0; p < parts; ++p) total += partial[p * sums + i];
      result[i] = total;
    }
  }

 private:
  struct Buffers {
    ConvolutionRun* runs;
    T *staged, *lines;
  };

  void compute(int64_t channel, int64_t first, int64_t end, T* result, const Buffers& buffers) const {
    const int64_t group = channel / s_.in_channels, c = channel % s_.in_channels;
    for (int64_t sample = first; sample < end; ++sample)
      for (int64_t b = 0; b < staging_.bands(); ++b) {
        const Staging::Band band = staging_.band(b);
        staging_.stage(band, in_ + sample * s_.in_sample() + channel * s_.in_plane(), buffers.runs,
                       buffers.staged);
        for (int64_t k = 0; k < s_.out_channels; ++k) {
          const int64_t feature = group * s_.out_channels + k;
          correlate(band, grad_ + sample * s_.out_sample() + feature * s_.out_plane(), buffers,
                    result + (feature * s_.in_channels + c) * taps_);
        }
      }
  }

  // Adds the sums of a band. Lines of the gradient are copied if reading whole registers would go beyond them.
  void correlate(const Staging::Band& band, const T* grad, const Buffers& buffers, T* sums) const {
    const int64_t row = s_.axis[2].grid, padded = round_up(row, kConvolutionPad);
    const T* from = grad + (band.z * s_.axis[1].grid + band.y) * row;
    if (row != padded) {
      for (int64_t i = 0; i < band.lines; ++i) std::copy_n(from + i * row, row, buffers.lines + i * padded);
      from = buffers.lines;
    }
    table_.correlate({from, buffers.staged, padded, staging_.line_step(), band.lines, row}, offset_.data(),
                     taps_, sums);
  }

  const Sweep& s_;
  const T *in_, *grad_;
  const int64_t taps_;
  const ConvolutionTaps<T>& table_ = convolution_taps<T>();
  const Staging staging_;
  const Scratch<int64_t> offset_;
};

}  // namespace

template <class T>
void sweep_lines(const Sweep& sweep, const SweepData<T>& data) {
  SweepLines<T>(sweep, data).run();
}
template void sweep_lines(const Sweep&, const SweepData<float>&);
template void sweep_lines(const Sweep&, const SweepData<double>&);

template <class T>
void weight_lines(const Sweep& sweep, const T* in, const T* grad, T* result) {
  WeightLines<T>(sweep, in, grad).run(result);
}
template void weight_lines(const Sweep&, const float*, const float*, float*);
template void weight_lines(const Sweep&, const double*, const double*, double*);

}  // namespace retrograd::cpu
