// The span kernels of a family of ops for the best instruction-set level that this machine has.
#pragma once

#include "cpu/features.h"
#include "cpu/kernels/spans.h"

namespace retrograd::cpu {

/// One row per op of List, which a file spans_*.cc instantiates.
template <class List>
SpanTable best_spans() {
#if defined(__x86_64__)
  switch (level()) {
    case Level::avx512: return avx512::span_table<List>();
    case Level::avx2: return avx2::span_table<List>();
    case Level::baseline: break;
  }
#endif
  return baseline::span_table<List>();
}

}  // namespace retrograd::cpu
