// Span kernels of ops/special.h, for one instruction-set level: see cpu/kernels/levels/spans.h.
//
// The loop, and the table that is made of a list of ops, are in cpu/kernels/levels/span_loop.h; this source
// instantiates the table, once, for all code. No op here has a loop of its own.
#include "ops/special.h"

#include "cpu/kernels/levels/span_loop.h"

namespace retrograd::inline v0::cpu::RG_ISA {

template SpanTable span_table<ops::SpecialOps>();

}  // namespace retrograd::cpu::RG_ISA
