// Conversions of tiles as span kernels, by the same functions as conversions of whole tensors
// (cpu/kernels/levels/copy_rows.h), so that converted values have the same bits.
//
// A tile is of float, or of double when it is `wide`. Lowering (cpu/fused/fused_draft.cc) inserts these between ops
// of different dtypes, and at the outputs of a group. All take one operand and no attributes.
#pragma once

#include "cpu/kernels/levels/spans.h"
#include "engine/dtype.h"

namespace retrograd::inline v0::cpu {

/// A tile to elements of a dtype.
Span store_span(bool wide, ScalarType to);
/// Stores a tile unconverted, bypassing the caches. To be followed by finish_streams()
/// (cpu/fused/levels/stream_span.h).
Span stream_span(bool wide);
/// A tile of floats rounded to a narrower dtype, as floats. Works in place, too.
Span round_span(ScalarType to);
/// Doubles to the floats whose rounding to a narrower dtype is that of the doubles (ops/convert.h). Not in place.
Span odd_span();
/// Floats to doubles when `to_wide`, else doubles to floats. Not in place.
Span width_span(bool to_wide);

}  // namespace retrograd::cpu
