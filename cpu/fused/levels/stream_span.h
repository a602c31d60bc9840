// Copies that bypass the caches, one function per instruction-set level.
//
// Writes beyond the size of a cache would only evict other data, and a line that is written as a whole need not be
// read first. Fused groups write large outputs this way (cpu/fused/fused_convert.h). The writer calls
// finish_streams() before another thread may read the memory. Implemented by cpu/fused/levels/stream_span.cc.
#pragma once

#include "cpu/kernels/levels/spans.h"
#include "cpu/levels.h"

namespace retrograd::inline v0::cpu {

RG_EACH_LEVEL(template <class T>
              void stream_span(void* out, const void* const* in, int64_t n, const void* attrs);)
/// The function of the best level, for T float and double.
template <class T>
Span best_stream_span() {
  RG_RETURN_BEST_LEVEL(stream_span<T>);
}

/// Orders streamed stores before all later stores of this thread.
inline void finish_streams() {
#if defined(__x86_64__)
  __builtin_ia32_sfence();
#endif
}

}  // namespace retrograd::cpu
