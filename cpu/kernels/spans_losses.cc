// Span kernels of ops/losses.h: see cpu/kernels/spans.h.
#include "ops/losses.h"

#include "cpu/kernels/span_rows.h"

namespace retrograd::cpu::RG_ISA {

template SpanTable span_table<ops::LossOps>();

}  // namespace retrograd::cpu::RG_ISA
