// Span kernels of ops/arithmetic.h, ops/binary.h, ops/comparison.h, ops/ternary.h: see cpu/kernels/spans.h.
#include "ops/arithmetic.h"
#include "ops/binary.h"
#include "ops/comparison.h"
#include "ops/ternary.h"

#include "cpu/kernels/span_rows.h"

namespace retrograd::cpu::RG_ISA {

template SpanTable span_table<ops::ArithmeticOps>();
template SpanTable span_table<ops::BinaryOps>();
template SpanTable span_table<ops::ComparisonOps>();
template SpanTable span_table<ops::TernaryOps>();

}  // namespace retrograd::cpu::RG_ISA
