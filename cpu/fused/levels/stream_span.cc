// Copies past the caches for one instruction-set level: see cpu/fused/levels/stream_span.h.
//
// Whole cache lines are streamed, a register at a time; the elements before the first line and after the last one are
// stored as usual. The source may be at any address, since it is read by ordinary loads. Only plain loops here:
// nothing of the standard library, no throw (tools/isa.bzl says why).
#include "cpu/fused/levels/stream_span.h"

#include "cpu/vec/vec.h"

namespace retrograd::inline v0::cpu::RG_ISA {

template <class T>
void stream_span(void* out, const void* const* in, int64_t n, const void*) {
  constexpr int64_t kLine = 64 / sizeof(T);
  const T* from = static_cast<const T*>(in[0]);
  T* to = static_cast<T*>(out);
  int64_t i = 0;
  for (; i < n && reinterpret_cast<uintptr_t>(to + i) % 64 != 0; ++i) to[i] = from[i];
  for (; i + kLine <= n; i += kLine)
    for (int64_t k = 0; k < kLine; k += Vec<T>::size) native_stream(to + i + k, Vec<T>::load(from + i + k).v);
  for (; i < n; ++i) to[i] = from[i];
}
template void stream_span<float>(void*, const void* const*, int64_t, const void*);
template void stream_span<double>(void*, const void* const*, int64_t, const void*);

}  // namespace retrograd::cpu::RG_ISA
