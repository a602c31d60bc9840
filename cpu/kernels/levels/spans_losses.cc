// Span kernels of ops/losses.h, for one instruction-set level: see cpu/kernels/levels/spans.h.
//
// The loop, and the table that is made of a list of ops, are in cpu/kernels/levels/span_loop.h; this source
// instantiates the tables, once, for all code. These are the elementwise losses. Losses over classes go row
// by row instead (cpu/kernels/class_losses.cc).
#include "ops/losses.h"

#include "cpu/kernels/levels/span_loop.h"

namespace retrograd::inline v0::cpu::RG_ISA {

template SpanTable span_table<ops::LossOps>();

}  // namespace retrograd::cpu::RG_ISA
