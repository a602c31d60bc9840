// Span kernels of ops/activations.h: see cpu/kernels/spans.h.
#include "ops/activations.h"

#include "cpu/kernels/span_rows.h"

namespace retrograd::cpu::RG_ISA {

template SpanTable span_table<ops::ActivationOps>();

}  // namespace retrograd::cpu::RG_ISA
