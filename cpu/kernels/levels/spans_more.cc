// Span kernels of ops/bitwise.h, ops/float_ops.h and ops/shrinkage.h, for one instruction-set level: see
// cpu/kernels/levels/spans.h.
//
// The loop, and the table that is made of a list of ops, are in cpu/kernels/levels/span_loop.h; this source
// instantiates the tables, once, for all code. No op here has a loop of its own.
#include "ops/bitwise.h"
#include "ops/float_ops.h"
#include "ops/shrinkage.h"

#include "cpu/kernels/levels/span_loop.h"

namespace retrograd::inline v0::cpu::RG_ISA {

template SpanTable span_table<ops::BitwiseOps>();
template SpanTable span_table<ops::FloatOps>();
template SpanTable span_table<ops::ShrinkageOps>();

}  // namespace retrograd::cpu::RG_ISA
