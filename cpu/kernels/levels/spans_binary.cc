// Span kernels of ops/arithmetic.h, ops/binary.h, ops/comparison.h and ops/ternary.h, for one instruction-set
// level: see cpu/kernels/levels/spans.h.
//
// The loop, and the table that is made of a list of ops, are in cpu/kernels/levels/span_loop.h; this source
// instantiates the tables, once, for all code. The ops' headers come first: they define the formulas that the
// loop is instantiated with. No op here has a loop of its own.
#include "ops/arithmetic.h"
#include "ops/binary.h"
#include "ops/comparison.h"
#include "ops/ternary.h"

#include "cpu/kernels/levels/span_loop.h"

namespace retrograd::inline v0::cpu::RG_ISA {

template SpanTable span_table<ops::ArithmeticOps>();
template SpanTable span_table<ops::BinaryOps>();
template SpanTable span_table<ops::ComparisonOps>();
template SpanTable span_table<ops::TernaryOps>();

}  // namespace retrograd::cpu::RG_ISA
