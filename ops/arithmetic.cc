// Rules and public functions of ops/arithmetic.h.
#include "ops/arithmetic.h"

#include <fmt/format.h>

#include "engine/runner.h"
#include "ops/shape_ops.h"

namespace retrograd {
namespace ops {
namespace {

SaveSet save_partner(const Call& call, uint64_t wants) {
  if (!call.operands[0] || !call.operands[1]) return {};
  return {(wants & 1) << 1 | (wants >> 1 & 1), 0};
}

}  // namespace

Tensor Neg::chain(const Point&, int, const Tensor& t) { return neg(t); }
Tensor Sub::chain(const Point&, int i, const Tensor& t) { return i == 0 ? t : neg(t); }
Tensor Mul::chain(const Point& p, int i, const Tensor& t) { return mul(t, p.in(1 - i)); }

Tensor Div::chain(const Point& p, int i, const Tensor& t) {
  return i == 0 ? div(t, p.in(1)) : mul(neg(t), div(div(p.in(0), p.in(1)), p.in(1)));
}

SaveSet Mul::saves_for(const Call& call, uint64_t wants) { return save_partner(call, wants); }

// A tensor divided by a number saves nothing; a number by a tensor saves the tensor.
SaveSet Div::saves_for(const Call& call, uint64_t wants) {
  if (!call.operands[1]) return {};
  return {uint64_t{2} | (call.operands[0] ? wants >> 1 & 1 : 0), 0};
}

}  // namespace ops

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
