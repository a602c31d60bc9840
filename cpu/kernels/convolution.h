// The common part of the convolution kernels: a convolution in one form, for every op and number of dims.
//
// A sweep computes results on a grid, each the sum over input channels and places of the kernel:
//   out[n, g, k, first + i * step] = sum over c, t of
//     weight[g, k, c, tap + t * tap_step] * in[n, g, c, i * stride + offset + t * offset_step]
// in each of three dims (SweepAxis); dims that are missing have size 1. Channels are counted within a group g. A
// convolution is one sweep. A transposed one with stride s is s of them per dim, one for each remainder of
// the place by s: results of one remainder meet the same places of the kernel, and read the input densely. So
// nothing is ever added into the output from two places, and no zeros are multiplied.
//
// There are two ways to compute a sweep, and the sum over samples and places that is the weight's gradient: tiles of
// dense rows for the register tiles of matrix products (convolution_tiles.cc and convolution_weight.cc), and, for few
// features per group, as in depthwise convolutions, sums over shifted lines (convolution_lines.cc). The choice, and
// the cutting of the work, depend on sizes and dtype.
#pragma once

#include <algorithm>

#include "cpu/division.h"
#include "cpu/kernels/levels/convolution_rows.h"

namespace retrograd::inline v0::cpu {

struct SweepAxis {
  int64_t in = 1, out = 1, kernel = 1;              // sizes
  int64_t grid = 1, first = 0, step = 1;            // of the results
  int64_t taps = 1, tap = 0, tap_step = 1;          // of the kernel's places
  int64_t stride = 1, offset = 0, offset_step = 1;  // of what they read
};

struct Sweep {
  int64_t batch, groups, in_channels, out_channels;  // channels per group
  SweepAxis axis[3];

  int64_t in_plane() const { return axis[0].in * axis[1].in * axis[2].in; }
  int64_t out_plane() const { return axis[0].out * axis[1].out * axis[2].out; }
  int64_t kernel() const { return axis[0].kernel * axis[1].kernel * axis[2].kernel; }
  int64_t taps() const { return axis[0].taps * axis[1].taps * axis[2].taps; }
  int64_t grid() const { return axis[0].grid * axis[1].grid * axis[2].grid; }
  int64_t in_sample() const { return groups * in_channels * in_plane(); }
  int64_t out_sample() const { return groups * out_channels * out_plane(); }
  /// All places of the kernel, in order.
  bool natural() const { return taps() == kernel(); }
};

/// The memory of an operand of a sweep: contiguous, except for the order of the weight's channels.
template <class T>
struct SweepData {
  const T *in, *weight, *bias;  // bias: of groups * out_channels values, or null
  T* out;
  int64_t weight_in, weight_out;  // elements between channels; groups follow each other
};

template <class T>
void sweep_tiles(const Sweep& sweep, const SweepData<T>& data);
template <class T>
void sweep_lines(const Sweep& sweep, const SweepData<T>& data);

/// result[g, k, c, t] = sum over n, i of
///   grad[n, g, k, i] * in[n, g, c, i * stride + offset + t * offset_step].
/// The sweep is one of a convolution: its grid is the whole result.
template <class T>
void weight_tiles(const Sweep& sweep, const T* in, const T* grad, T* result);
template <class T>
void weight_lines(const Sweep& sweep, const T* in, const T* grad, T* result);

/// Calls f(offset) for all places of the kernel in row-major order.
template <class F>
void for_taps(const Sweep& s, F&& f) {
  const SweepAxis(&a)[3] = s.axis;
  for (int64_t z = 0; z < a[0].taps; ++z)
    for (int64_t y = 0; y < a[1].taps; ++y)
      for (int64_t x = 0; x < a[2].taps; ++x) {
        const int64_t offset[3] = {a[0].offset + z * a[0].offset_step, a[1].offset + y * a[1].offset_step,
                                   a[2].offset + x * a[2].offset_step};
        f(offset);
      }
}

/// Writes the runs of results [begin, end) of all samples in row-major order to `runs`; returns their number.
int64_t make_runs(const Sweep& sweep, int64_t begin, int64_t end, ConvolutionRun* runs);

}  // namespace retrograd::cpu
