// Rows of the kernel table for elementwise ops, made from the list of their structs.
//
// ops::ElementwiseFamilies names all families and the ops of each; a row is a kernel instantiated for the op,
// and the span kernels of the best instruction-set level (cpu/kernels/levels/spans.h). So a new op needs no
// line here: it is in its family's list. tests/docs compiles this file again with an op that
// docs/add_an_op.md adds.
#include "cpu/kernels/elementwise.h"
#include "cpu/kernels/levels/spans.h"
#include "cpu/kernels/table.h"
#include "engine/bookkeeping.h"
#include "ops/bitwise.h"
#include "ops/elementwise_list.h"

namespace retrograd::inline v0::cpu {
namespace {

template <class Op, class List>
void elementwise_kernel(const Call& call, TensorImpl* const* outputs) {
  static const Spans& spans = span_table<List>()[ops::index_of<Op, List>];
  if constexpr (requires { Op::divides; }) refuse_zero_divisors(call);
  elementwise(call, *outputs[0], spans);
}

template <class Op, class List>
void add_op(KernelTable& table, const OpInfo* op) {
  table.set(op, elementwise_kernel<Op, List>, &span_table<List>()[ops::index_of<Op, List>]);
}

}  // namespace

void add_elementwise_kernels(KernelTable& table) {
  ops::ElementwiseFamilies::for_each(
      [&]<class Op, class List>() { add_op<Op, List>(table, &ops::info<Op>); });
  ops::ActivationPartOps::for_each(
      [&]<class Op>() { add_op<Op, ops::ActivationPartOps>(table, &ops::info<Op>); });
  ops::BitwiseOps::for_each([&]<class Op>() { add_op<Op, ops::BitwiseOps>(table, &ops::info<Op>); });
  add_op<ops::Add, ops::ArithmeticOps>(table, &ops::accumulate);
}

}  // namespace retrograd::cpu
