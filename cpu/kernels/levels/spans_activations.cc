// Span kernels of ops/activations.h, for one instruction-set level: see cpu/kernels/levels/spans.h.
//
// The loop, and the table that is made of a list of ops, are in cpu/kernels/levels/span_loop.h; this source
// instantiates the tables, once, for all code. Floats of gelu and its parts are computed two registers at a
// time: kInPairs says so, and the header span_pairs.h must come before the ops' header, whose formulas find
// the functions of Pair by name.
#include "cpu/kernels/levels/span_pairs.h"
#include "ops/activations.h"

namespace retrograd::inline v0::cpu::RG_ISA {

template <>
constexpr bool kInPairs<ops::Gelu> = true;
template <>
constexpr bool kInPairs<ops::Backward<ops::Gelu>> = true;
template <>
constexpr bool kInPairs<ops::Gate<ops::Gelu>> = true;

template SpanTable span_table<ops::ActivationOps>();
template SpanTable span_table<ops::ActivationPartOps>();

}  // namespace retrograd::cpu::RG_ISA
