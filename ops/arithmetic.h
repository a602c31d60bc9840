// Arithmetic: neg, add, sub, mul, div, and the operators.
// Derivatives: d(a+b) = da + db; d(ab) = b da + a db; d(a/b) = da / b - db a / b^2 (PyTorch:
// derivatives.yaml), computed as (db (a / b)) / b: b^2 may be out of range.
#pragma once

#include "ops/elementwise.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {
namespace ops {

struct Neg : Elementwise<1>, ChainRule<Neg> {
  static constexpr std::string_view name = "neg", doc = "-x";
  static constexpr bool integers = true, booleans = false;
  template <class V>
  RG_HD static V fwd(V x, const Attrs&) {
    return -x;
  }
  static Tensor chain(const Point&, int, const Tensor& t);
};

struct Add : Binary, ChainRule<Add> {
  static constexpr std::string_view name = "add", doc = "a + b";
  static constexpr uint32_t traits = Trait::pure | Trait::elementwise | Trait::commutative;
  static constexpr bool integers = true;
  template <class V>
  RG_HD static V fwd(V a, V b, const Attrs&) {
    return a + b;
  }
  static Tensor chain(const Point&, int, const Tensor& t) { return t; }
};

struct Sub : Binary, ChainRule<Sub> {
  static constexpr std::string_view name = "sub", doc = "a - b";
  static constexpr bool integers = true, booleans = false;
  template <class V>
  RG_HD static V fwd(V a, V b, const Attrs&) {
    return a - b;
  }
  static Tensor chain(const Point&, int i, const Tensor& t);
};

struct Mul : Binary, ChainRule<Mul> {
  static constexpr std::string_view name = "mul", doc = "a * b";
  static constexpr uint32_t traits = Trait::pure | Trait::elementwise | Trait::commutative;
  static constexpr bool integers = true;
  static SaveSet saves_for(const Call& call, uint64_t wants) {
    if (!call.operands[0] || !call.operands[1]) return {};
    return {(wants & 1) << 1 | (wants >> 1 & 1), 0};
  }
  template <class V>
  RG_HD static V fwd(V a, V b, const Attrs&) {
    return a * b;
  }
  static Tensor chain(const Point& p, int i, const Tensor& t);
};

struct Div : Binary, ChainRule<Div> {
  static constexpr std::string_view name = "div", doc = "a / b";
  static constexpr Promotion promotion = Promotion::floating;
  // A tensor divided by a number saves nothing; a number by a tensor saves the tensor.
  static SaveSet saves_for(const Call& call, uint64_t wants) {
    if (!call.operands[1]) return {};
    return {uint64_t{2} | (call.operands[0] ? wants >> 1 & 1 : 0), 0};
  }
  template <class V>
  RG_HD static V fwd(V a, V b, const Attrs&) {
    return a / b;
  }
  static Tensor chain(const Point& p, int i, const Tensor& t);
};

/// A quotient rounded to an integer: constant almost everywhere.
template <class F>
struct RoundedQuotient : Binary, ChainRule<F> {
  static constexpr bool integers = true, booleans = false, divides = true;
  static Tensor chain(const Point& p, int i, const Tensor&) { return zero_chain(p, i); }
};

struct DivTrunc : RoundedQuotient<DivTrunc> {
  static constexpr std::string_view name = "div_trunc", doc = "a / b rounded toward zero";
  template <class V>
  RG_HD static V fwd(V a, V b, const Attrs&) {
    return math::trunc_divide(a, b);
  }
};

struct DivFloor : RoundedQuotient<DivFloor> {
  static constexpr std::string_view name = "div_floor", doc = "a / b rounded down";
  template <class V>
  RG_HD static V fwd(V a, V b, const Attrs&) {
    return math::floor_divide(a, b);
  }
};

using ArithmeticOps = OpList<Neg, Add, Sub, Mul, Div, DivTrunc, DivFloor>;

}  // namespace ops

inline constexpr ops::Function<ops::Neg> neg;
inline constexpr ops::Function<ops::Mul> mul;

/// a + alpha * b and a - alpha * b. Error(bad_argument) for a floating alpha with integers or bools;
/// Error(dtype_mismatch) when bools are subtracted.
Tensor add(const Operand& a, const Operand& b, Scalar alpha = 1);
Tensor sub(const Operand& a, const Operand& b, Scalar alpha = 1);
/// a / b; integers give float32. rounding_mode "trunc" or "floor" rounds the quotient and keeps integers; ""
/// does not. Error(bad_argument) for another mode, and for integers divided by 0.
Tensor div(Operand a, Operand b, std::string_view rounding_mode = {});
/// into += x, without a record: used for the accumulation into .grad.
void add_in_place(const Tensor& into, const Tensor& x);

inline Tensor operator+(const Operand& a, const Operand& b) { return add(a, b); }
inline Tensor operator-(const Operand& a, const Operand& b) { return sub(a, b); }
inline Tensor operator*(const Operand& a, const Operand& b) { return mul(a, b); }
inline Tensor operator/(const Operand& a, const Operand& b) { return div(a, b); }
inline Tensor operator-(const Operand& a) { return neg(a); }

}  // namespace retrograd
#pragma GCC visibility pop

// ---- derivatives: compiled in ops/derivatives.cc alone ----
#ifdef RG_DERIVATIVES

namespace retrograd::inline v0::ops {

Tensor Neg::chain(const Point&, int, const Tensor& t) { return neg(t); }
Tensor Sub::chain(const Point&, int i, const Tensor& t) { return i == 0 ? t : neg(t); }
Tensor Mul::chain(const Point& p, int i, const Tensor& t) { return mul(t, p.in(1 - i)); }

Tensor Div::chain(const Point& p, int i, const Tensor& t) {
  return i == 0 ? div(t, p.in(1)) : neg(div(mul(t, div(p.in(0), p.in(1))), p.in(1)));
}

}  // namespace retrograd::ops

#endif  // RG_DERIVATIVES
