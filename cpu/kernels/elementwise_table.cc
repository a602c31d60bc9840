// Rows of the kernel table for elementwise ops, made from the list of their structs.
#include "cpu/features.h"
#include "cpu/kernels/elementwise.h"
#include "cpu/kernels/table.h"
#include "ir/bookkeeping.h"
#include "ops/elementwise_list.h"

namespace retrograd::cpu {
namespace {

// The span kernels of a family for the best level that this machine has.
template <class List>
SpanTable span_table() {
#if defined(__x86_64__)
  switch (level()) {
    case Level::avx512: return avx512::span_table<List>();
    case Level::avx2: return avx2::span_table<List>();
    case Level::baseline: break;
  }
#endif
  return baseline::span_table<List>();
}

template <class Op, class List>
void elementwise_kernel(const Call& call, TensorImpl* const* outputs) {
  static const Spans& spans = span_table<List>()[ops::index_of<Op, List>];
  if constexpr (requires { Op::divides; }) refuse_zero_divisors(call);
  elementwise(call, *outputs[0], spans);
}

template <class Op, class List>
void add_op(KernelTable& table, const OpInfo* op) {
  const Spans& spans = span_table<List>()[ops::index_of<Op, List>];
  table.set(op, elementwise_kernel<Op, List>, spans.boolean ? nullptr : spans.f32,
            spans.boolean ? nullptr : spans.f64);
}

template <class List>
void add_family(KernelTable& table) {
  List::for_each([&]<class Op>() { add_op<Op, List>(table, &ops::info<Op>); });
}

}  // namespace

void add_elementwise_kernels(KernelTable& table) {
  add_family<ops::ArithmeticOps>(table);
  add_family<ops::UnaryOps>(table);
  add_family<ops::ActivationOps>(table);
  add_family<ops::BinaryOps>(table);
  add_family<ops::ComparisonOps>(table);
  add_family<ops::TernaryOps>(table);
  add_family<ops::LossOps>(table);
  add_op<ops::Add, ops::ArithmeticOps>(table, &ops::accumulate);
}

}  // namespace retrograd::cpu
