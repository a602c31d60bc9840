// Span kernels of three ops, of gradients of activations, of functions of sums and of conditions: see cpu/kernels/patterns.h.
#include "cpu/kernels/pattern_rows.h"

namespace retrograd::cpu::RG_ISA {

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
