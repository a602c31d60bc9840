// Public functions of ops/arithmetic.h that consist of more than one op.
#include "ops/arithmetic.h"

#include <fmt/format.h>

#include "engine/named_call.h"
#include "engine/runner.h"
#include "ops/copy.h"
#include "ops/shape_ops.h"

namespace retrograd::inline v0 {

namespace {

// a + alpha * b, or a - alpha * b. The product is in the dtype of the result: that of b may be too narrow.
template <class Op>
Tensor with_alpha(const Operand& a, const Operand& b, Scalar alpha) {
  const ops::Function<Op> plain;
  if (!alpha.is_symbolic() && alpha.number() == Number::of(int64_t{1})) return plain(a, b);
  const Operand both[] = {a, b};
  const ScalarType dtype = ops::compute_dtype(ops::typing<Op>, both, a.where());
  if (alpha.is_floating() && !is_floating(dtype))
    fail(Category::bad_argument, Op::name,
         fmt::format("alpha is {}, and the result holds no fractions", to_string(alpha)), a.where());
  if (b.is_scalar()) return plain(a, Operand(b.scalar() * alpha, a.where()));
  const Tensor wide = to(Operand(b.tensor(), a.where()), dtype);
  return plain(a, mul(Operand(wide, a.where()), dtype == kBool ? Scalar(alpha.to_int() != 0) : alpha));
}

}  // namespace

Tensor add(const Operand& a, const Operand& b, Scalar alpha) { return with_alpha<ops::Add>(a, b, alpha); }

Tensor sub(const Operand& a, const Operand& b, Scalar alpha) {
  const auto is_bool = [](const Operand& x) {
    return x.is_scalar() ? x.scalar().kind() == Number::Kind::Bool : x.defined_tensor("sub").dtype() == kBool;
  };
  if (is_bool(a) || is_bool(b))
    fail(Category::dtype_mismatch, "sub", "bools are not subtracted; use logical_xor or logical_not",
         a.where());
  return with_alpha<ops::Sub>(a, b, alpha);
}

Tensor div(Operand a, Operand b, std::string_view rounding_mode) {
  if (rounding_mode.empty()) return ops::Function<ops::Div>()(a, b);
  const NamedCall call("div", a.where());
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
