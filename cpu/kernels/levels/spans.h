// Span kernels: the inner loops of elementwise ops over contiguous float, double or 64-bit integer elements.
//
// They are instantiated from the ops' formulas (ops/elementwise_list.h) in spans_*.cc, once per instruction-set
// level, and nowhere else: other dtypes and strides go through tiles of the same kernels
// (cpu/kernels/elementwise.cc), so that an element's bits do not depend on its position. Spans are the kernels of one
// op, a SpanTable those of a list of ops, in its order. Fused groups have tables of their own, for lists of patterns
// (cpu/fused/levels/patterns.h).
#pragma once

#include <cstdint>

#include "cpu/levels.h"

namespace retrograd::inline v0::cpu {

/// out[i] = f(in[0][i], ...) for i < n. `out` holds bool when the op gives bool, else the computed type. The
/// same type as SpanKernel of engine/executor.h, which this header, included by code for wider instruction
/// sets, must not include.
using Span = void (*)(void* out, const void* const* in, int64_t n, const void* attrs);

struct Spans {
  Span f32, f64, i64;  // i64 is null for ops without integers
  Span b8;             // of bool operands, for ops that give bool and have integers; else null
  Span f32_truth,
      f64_truth;  // of ops that give bool, with 1 and 0 of the computed type as results; else null
  bool boolean;   // gives bool
};

/// One row per op of a family's list.
using SpanTable = const Spans*;

RG_EACH_LEVEL(template <class List> SpanTable span_table();)
/// The table of the best level, for a list that a source spans_*.cc or pattern_spans*.cc instantiates.
template <class List>
SpanTable span_table() {
  RG_RETURN_BEST_LEVEL(span_table<List>());
}

}  // namespace retrograd::cpu
