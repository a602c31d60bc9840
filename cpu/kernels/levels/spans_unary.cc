// Span kernels of ops/unary.h, for one instruction-set level: see cpu/kernels/levels/spans.h.
//
// The loop, and the table that is made of a list of ops, are in cpu/kernels/levels/span_loop.h; this source
// instantiates the tables, once, for all code. pow with a number and nan_to_num have loops of their own:
// their attributes may be symbols or integers, and are turned into plain numbers once, before the loop.
// tests/docs compiles this file again with an op more.
#include "ops/unary.h"

#include "cpu/kernels/levels/span_loop.h"

namespace retrograd::inline v0::cpu::RG_ISA {
namespace {

// The op's formula for attributes that are all numbers, here floating ones. They are put together again for each
// register, as then the compiler knows them for plain numbers: else a loop that does little asks again and again
// whether they are symbols or integers.
template <class Op, class T, class... Numbers>
[[gnu::always_inline]] inline void span_with(void* out, const void* const* in, int64_t n,
                                             Numbers... numbers) {
  run_span<1, T, T>(
      out, in,
      n, [=](const Vec<T>* x) __attribute__((always_inline)) { return Op::fwd(x[0], {numbers...}); });
}

// Which power it is is asked once, for those that take less time than the question.
template <class T>
[[gnu::flatten]] void power_span(void* out, const void* const* in, int64_t n, const void* attrs) {
  using Op = ops::PowScalar;
  const auto& a = *static_cast<const Op::Attrs*>(attrs);
  const double exponent = a.exponent.to_double(), coefficient = a.coefficient.to_double();
  if (exponent == 1) return span_with<Op, T>(out, in, n, 1.0, coefficient);
  if (exponent == 2) return span_with<Op, T>(out, in, n, 2.0, coefficient);
  if (exponent == 3) return span_with<Op, T>(out, in, n, 3.0, coefficient);
  span_with<Op, T>(out, in, n, exponent, coefficient);
}

template <class T>
[[gnu::flatten]] void nan_to_num_span(void* out, const void* const* in, int64_t n, const void* attrs) {
  using Op = ops::NanToNum;
  const auto& a = *static_cast<const Op::Attrs*>(attrs);
  span_with<Op, T>(out, in, n, a.nan.to_double(), a.posinf.to_double(), a.neginf.to_double());
}

}  // namespace

template <>
void span<ops::PowScalar, float, float>(void* out, const void* const* in, int64_t n, const void* attrs) {
  power_span<float>(out, in, n, attrs);
}
template <>
void span<ops::PowScalar, double, double>(void* out, const void* const* in, int64_t n, const void* attrs) {
  power_span<double>(out, in, n, attrs);
}
template <>
void span<ops::NanToNum, float, float>(void* out, const void* const* in, int64_t n, const void* attrs) {
  nan_to_num_span<float>(out, in, n, attrs);
}
template <>
void span<ops::NanToNum, double, double>(void* out, const void* const* in, int64_t n, const void* attrs) {
  nan_to_num_span<double>(out, in, n, attrs);
}

template SpanTable span_table<ops::UnaryOps>();

}  // namespace retrograd::cpu::RG_ISA
