// Span kernels of ops/activations.h: see cpu/kernels/spans.h.
#include "cpu/kernels/span_pairs.h"
#include "ops/activations.h"

namespace retrograd::cpu::RG_ISA {

template <>
constexpr bool kInPairs<ops::Gelu> = true;
template <>
constexpr bool kInPairs<ops::Backward<ops::Gelu>> = true;
template <>
constexpr bool kInPairs<ops::Gate<ops::Gelu>> = true;

template SpanTable span_table<ops::ActivationOps>();
template SpanTable span_table<ops::ActivationPartOps>();

}  // namespace retrograd::cpu::RG_ISA
