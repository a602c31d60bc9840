// Conversions of tiles as span kernels, by the same functions as conversions of whole tensors
// (cpu/kernels/rows_copy.h), so that what is converted has the same bits. A tile is of float, or of double
// when it is `wide`.
#pragma once

#include "cpu/kernels/spans.h"
#include "engine/dtype.h"

namespace retrograd::cpu {

/// A tile to elements of a dtype.
Span store_span(bool wide, ScalarType to);
/// A tile as it is to memory, past the caches. finish_streams() (cpu/kernels/spans_stream.h) comes afterwards.
Span best_stream_span(bool wide);
/// A tile of floats rounded to a narrower dtype, as floats. In place, too.
Span round_span(ScalarType to);
/// Doubles to the floats whose rounding to a narrower dtype is that of the doubles (ops/convert.h). Not in place.
Span odd_span();
/// Floats to doubles when `to_wide`, else doubles to floats. Not in place.
Span width_span(bool to_wide);

}  // namespace retrograd::cpu
