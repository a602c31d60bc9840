// The inner loops of convolutions, two tables of functions per instruction-set level: copies of input places
// into dense rows, and sums over the places of a kernel. Implemented by convolution_rows.cc.
//
// A run is a piece of a row of results that lie in one line of the last dim: result i of it reads, at the
// kernel's place with offset (z, y, x), the input place (at[0] + z, at[1] + y, at[2] + x + i * stride). What
// lies outside the input reads as 0.
#pragma once

#include <cstdint>

#include "cpu/levels.h"

namespace retrograd::inline v0::cpu {

inline constexpr int64_t kConvolutionPad = 16;  // elements: at least a vector register of any level

struct ConvolutionRun {
  int64_t at[3];   // input place of the run's first result, at offset 0; may be outside
  int64_t from;    // the same as an element, counted from the first one of a channel of sample 0
  int64_t to;      // its result as an element, counted from the first one of a channel of sample 0
  int64_t column;  // where it stands in a dense row
  int64_t count;
};

template <class T>
struct ConvolutionCopies {
  /// row[run.column + i] = what result i of each run reads of a channel with sizes size[3] at `offset`.
  void (*patch)(const T* channel, const int64_t* size, int64_t stride, const ConvolutionRun* runs,
                int64_t run_count, const int64_t* offset, T* row);
  /// out[run.to + i * step] = row[run.column + i] + bias.
  void (*store)(const T* row, const ConvolutionRun* runs, int64_t run_count, T bias, int64_t step, T* out);
};

/// Lines of two operands, so many elements apart. Of each, elements up to n rounded up to kConvolutionPad are
/// read.
template <class T>
struct CorrelationLines {
  const T *g, *x;
  int64_t g_step, x_step, lines, n;
};

template <class T>
struct ConvolutionTaps {
  /// out[i] = start + sum over t < count of weight[t] * x[offset[t] + i], for i < n. Elements of x up to n
  /// rounded up to kConvolutionPad are read.
  void (*combine)(const T* x, const int64_t* offset, const T* weight, int64_t count, T start, T* out,
                  int64_t n);
  /// sums[t] += the sum over lines and i < n of g[i] * x[offset[t] + i], for t < count.
  void (*correlate)(const CorrelationLines<T>& lines, const int64_t* offset, int64_t count, T* sums);
};

RG_EACH_LEVEL(template <class T> const ConvolutionCopies<T>& convolution_copies();)
/// The table of the best level, for T float, double and int64_t.
template <class T>
const ConvolutionCopies<T>& convolution_copies() {
  RG_RETURN_BEST_LEVEL(convolution_copies<T>());
}

RG_EACH_LEVEL(template <class T> const ConvolutionTaps<T>& convolution_taps();)
/// The table of the best level, for T float and double.
template <class T>
const ConvolutionTaps<T>& convolution_taps() {
  RG_RETURN_BEST_LEVEL(convolution_taps<T>());
}

}  // namespace retrograd::cpu
