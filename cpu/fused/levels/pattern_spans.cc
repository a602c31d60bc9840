// Span kernels of patterns, the first half: pairs of cheap ops, and one op with a number.
//
// The lists are in cpu/fused/levels/patterns.h, the kernels are made from them by cpu/fused/levels/pattern_spans.h.
// This source only instantiates the tables, for one instruction-set level; pattern_spans_more.cc does so for the
// other lists. All in one source would take minutes to compile. Each list in AllPatterns must be instantiated in
// exactly one of the two.
#include "cpu/fused/levels/pattern_spans.h"

namespace retrograd::inline v0::cpu::RG_ISA {

template SpanTable span_table<patterns::Numbers>();
template SpanTable span_table<patterns::OfProduct>();
template SpanTable span_table<patterns::OfSum>();
template SpanTable span_table<patterns::OfDifference>();
template SpanTable span_table<patterns::OfNegative>();
template SpanTable span_table<patterns::OfTimesNumber>();
template SpanTable span_table<patterns::OfPlusNumber>();
template SpanTable span_table<patterns::OfNumberMinus>();
template SpanTable span_table<patterns::TakenAway>();

}  // namespace retrograd::cpu::RG_ISA
