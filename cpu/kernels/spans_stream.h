// Copies that go past the caches: what is written beyond their size would only push other things out, and a
// line that is written as a whole need not be read first. The writer calls finish_streams() before another
// thread may look.
#pragma once

#include "cpu/kernels/spans.h"

namespace retrograd::cpu {

namespace baseline {
template <class T>
void stream_span(void* out, const void* const* in, int64_t n, const void* attrs);
}
namespace avx2 {
template <class T>
void stream_span(void* out, const void* const* in, int64_t n, const void* attrs);
}
namespace avx512 {
template <class T>
void stream_span(void* out, const void* const* in, int64_t n, const void* attrs);
}

/// Orders what was streamed before what this thread writes from now on.
inline void finish_streams() {
#if defined(__x86_64__)
  __builtin_ia32_sfence();
#endif
}

}  // namespace retrograd::cpu
