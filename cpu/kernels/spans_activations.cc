// Span kernels of ops/activations.h: see cpu/kernels/spans.h.
#include "cpu/kernels/span_pairs.h"
#include "ops/activations.h"

namespace retrograd::cpu::RG_ISA {

template <>
void span<ops::Gelu, float, float>(void* out, const void* const* in, int64_t n, const void* attrs) {
  span_in_pairs<ops::Gelu>(out, in, n, attrs);
}
template <>
void span<ops::Backward<ops::Gelu>, float, float>(void* out, const void* const* in, int64_t n,
                                                  const void* attrs) {
  span_in_pairs<ops::Backward<ops::Gelu>>(out, in, n, attrs);
}

template SpanTable span_table<ops::ActivationOps>();

}  // namespace retrograd::cpu::RG_ISA
