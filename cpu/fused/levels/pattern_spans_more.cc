// Span kernels of patterns, the second half: three ops, gradients of activations, functions of sums and
// products, and conditions.
//
// The lists are in cpu/fused/levels/patterns.h, the kernels are made from them by cpu/fused/levels/pattern_spans.h.
// This source only instantiates the tables, for one instruction-set level; pattern_spans.cc does so for the other
// lists. Each list in AllPatterns must be instantiated in exactly one of the two.
#include "cpu/fused/levels/pattern_spans.h"

namespace retrograd::inline v0::cpu::RG_ISA {

template SpanTable span_table<patterns::Triples>();
template SpanTable span_table<patterns::CheapGradients>();
template SpanTable span_table<patterns::FunctionOf<ops::Exp>>();
template SpanTable span_table<patterns::FunctionOf<ops::Tanh>>();
template SpanTable span_table<patterns::FunctionOf<ops::Sigmoid>>();
template SpanTable span_table<patterns::Choices>();
template SpanTable span_table<patterns::ChosenBy<ops::Gt>>();
template SpanTable span_table<patterns::ChosenBy<ops::Ge>>();
template SpanTable span_table<patterns::ChosenBy<ops::Lt>>();
template SpanTable span_table<patterns::ChosenBy<ops::Le>>();
template SpanTable span_table<patterns::ChosenBy<ops::Eq>>();

}  // namespace retrograd::cpu::RG_ISA
