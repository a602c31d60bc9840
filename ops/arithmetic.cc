// Public functions of ops/arithmetic.h that are more than one op, and its derivatives.
#define RETROGRAD_ARITHMETIC_DERIVATIVES
#include "ops/arithmetic.h"

#include <fmt/format.h>

#include "engine/runner.h"
#include "ops/shape_ops.h"

namespace retrograd {

Tensor add(const Operand& a, const Operand& b, Scalar alpha) {
  const ops::Function<ops::Add> plain;
  if (!alpha.is_symbolic() && alpha.number() == Number::of(int64_t{1})) return plain(a, b);
  if (b.is_scalar()) return plain(a, Operand(b.scalar() * alpha, a.where()));
  return plain(a, mul(Operand(b.tensor(), a.where()), alpha));
}

Tensor sub(const Operand& a, const Operand& b, Scalar alpha) {
  const ops::Function<ops::Sub> plain;
  if (!alpha.is_symbolic() && alpha.number() == Number::of(int64_t{1})) return plain(a, b);
  if (b.is_scalar()) return plain(a, Operand(b.scalar() * alpha, a.where()));
  return plain(a, mul(Operand(b.tensor(), a.where()), alpha));
}

Tensor div(Operand a, Operand b, std::string_view rounding_mode) {
  if (rounding_mode.empty()) return ops::Function<ops::Div>()(a, b);
  if (rounding_mode == "trunc") return ops::Function<ops::DivTrunc>()(a, b);
  if (rounding_mode == "floor") return ops::Function<ops::DivFloor>()(a, b);
  fail(Category::bad_argument, "div",
       fmt::format("rounding_mode is \"{}\", not \"trunc\" or \"floor\"", rounding_mode), a.where());
}

void add_in_place(const Tensor& into, const Tensor& x) {
  TensorImpl* operands[] = {into.get(), x.get()};
  const Call call{&ops::info<ops::Add>, operands, nullptr, {}, 1};
  run_into(call, into);
}

}  // namespace retrograd
