// Span kernels of ops/unary.h: see cpu/kernels/spans.h.
#include "ops/unary.h"

#include "cpu/kernels/span_rows.h"

namespace retrograd::cpu::RG_ISA {

template SpanTable span_table<ops::UnaryOps>();

}  // namespace retrograd::cpu::RG_ISA
