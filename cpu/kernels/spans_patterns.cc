// Span kernels of pairs of cheap ops and of one with a number: see cpu/kernels/patterns.h.
#include "cpu/kernels/pattern_rows.h"

namespace retrograd::cpu::RG_ISA {

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
