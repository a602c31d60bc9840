// Rows of the kernel table for elementwise ops, made from the list of their structs, and for copies and
// constants.
#include "cpu/features.h"
#include "cpu/kernels/elementwise.h"
#include "cpu/kernels/table.h"
#include "ir/bookkeeping.h"
#include "ops/elementwise_list.h"
#include "ops/full.h"
#include "ops/shape_ops.h"

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

void copy_kernel(const Call& call, TensorImpl* const* outputs) {
  convert_copy(*call.operands[0], *outputs[0]);
}

void full_kernel(const Call& call, TensorImpl* const* outputs) {
  const Scalar value = call.attrs_as<ops::Full::Attrs>().value;
  TensorImpl& out = *outputs[0];
  dispatch(out.dtype(), [&]<class T>(std::type_identity<T>) {
    T v;
    if constexpr (std::is_integral_v<T>)
      v = static_cast<T>(value.to_int());
    else
      v = static_cast<T>(value.to_double());
    T* p = static_cast<T*>(out.data());
    std::fill(p, p + out.numel().raw(), v);
  });
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

void add_copy_kernels(KernelTable& table) {
  table.set(&ops::info<ops::Clone>, copy_kernel);
  table.set(&ops::info<ops::To>, copy_kernel);
  table.set(&ops::info<ops::Full>, full_kernel);
}

}  // namespace retrograd::cpu
