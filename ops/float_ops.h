// Functions that look at how a floating-point number is made: signs, neighbours, powers of 2, and extrema and
// comparisons that treat NaN in a way of their own. Results and errors are PyTorch's; of two equal operands of fmax and
// fmin each has half of the gradient.
#pragma once

#include "ops/special_formulas.h"
#include "ops/unary.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

#if defined(RG_ISA) || defined(RG_FORMULAS)
namespace math {

/// The number whose representation, read as an integer, is larger by n.
template <class V>
RG_HD V add_to_bits(V x, int64_t n) {
  using T = typename V::Scalar;
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  if constexpr (requires { x.bits(); })
    return V(x.bits() + static_cast<Bits>(n));
  else
    return __builtin_bit_cast(T, __builtin_bit_cast(Bits, x.v) + static_cast<Bits>(n));
}

/// The number after a towards b, where numbers lie `step` apart by representation.
template <class V>
RG_HD V next_after(V a, V b, int64_t step) {
  const V away = add_to_bits(a, step), back = add_to_bits(a, -step);
  const V least = math::copysign(add_to_bits(V(0), step), b);
  const V moved = math::select((b > a) ^ (a < 0), away, back);
  const V next = math::select(a == 0, least, moved);
  return math::select(math::isnan(a) | math::isnan(b), a + b, math::select(a == b, b, next));
}

/// a 2^b, rounded once but for subnormal results.
template <class D>
RG_HD D times_power_of_two(D a, D b) {
  const D near = math::clamp(b, -3300, 3300), third = math::trunc(near / 3), power = math::exp2(third);
  return a * power * power * math::exp2(near - 2 * third);
}

}  // namespace math
#else
namespace math {
inline constexpr Named next_after, times_power_of_two;
}
#endif

namespace ops {

struct Signbit : Test {
  static constexpr std::string_view name = "signbit", doc = "x is below 0, -0 or NaN with a sign";
  template <class V>
  RG_HD static auto fwd(V x, const Attrs&) {
    return math::is_negative(x);
  }
};

struct IsPosInf : Test {
  static constexpr std::string_view name = "isposinf", doc = "x is +inf";
  template <class V>
  RG_HD static auto fwd(V x, const Attrs&) {
    return math::isinf(x) & (x > 0);
  }
};

struct IsNegInf : Test {
  static constexpr std::string_view name = "isneginf", doc = "x is -inf";
  template <class V>
  RG_HD static auto fwd(V x, const Attrs&) {
    return math::isinf(x) & (x < 0);
  }
};

struct Copysign : Binary, ChainRule<Copysign> {
  static constexpr std::string_view name = "copysign", doc = "|a| with the sign of b; derivative 0 at a = 0";
  static constexpr Promotion promotion = Promotion::floating;
  static SaveSet saves_for(const Call&, uint64_t wants) { return {wants & 1, wants & 1}; }
  template <class V>
  RG_HD static V fwd(V a, V b, const Attrs&) {
    return math::copysign(a, b);
  }
  static Tensor chain(const Point& p, int i, const Tensor& t);
};

struct Heaviside : Elementwise<2> {
  static constexpr std::string_view name = "heaviside", doc = "1 for a > 0, b for a = 0, else 0";
  static constexpr bool integers = true;
  static constexpr std::string_view no_derivative = "it is a step";
  template <class V>
  RG_HD static V fwd(V a, V b, const Attrs&) {
    return math::select(a == 0, b, math::select(a > 0, 1, 0));
  }
};

/// `bfloat16`: the numbers are those of that dtype.
struct Nextafter : Elementwise<2>, ChainRule<Nextafter> {
  struct Attrs {
    bool bfloat16 = false;
    void visit(AttrVisitor& v) { v.field("bfloat16", bfloat16); }
  };
  static constexpr std::string_view name = "nextafter", doc = "the number next to a in the direction of b";
  static constexpr Saves saves = Saves::operands;
  template <class V>
  RG_HD static V fwd(V a, V b, const Attrs& attrs) {
    return math::next_after(a, b, attrs.bfloat16 ? 0x10000 : 1);
  }
  static Tensor chain(const Point& p, int i, const Tensor& t);
};

/// In input's dtype; the exponent need not be an integer.
struct Ldexp : Elementwise<2>, ChainRule<Ldexp> {
  static constexpr std::string_view name = "ldexp", doc = "a 2^b";
  static constexpr Promotion promotion = Promotion::floating;
  static SaveSet saves_for(const Call&, uint64_t wants) { return {2, wants >> 1 & 1}; }
  template <class V>
  RG_HD static V fwd(V a, V b, const Attrs&) {
    return math::in_double([](auto x, auto y) { return math::times_power_of_two(x, y); }, a, b);
  }
  static Tensor chain(const Point& p, int i, const Tensor& t);
};

struct Fmax : Elementwise<2>, ChainRule<Fmax> {
  static constexpr std::string_view name = "fmax", doc = "the larger of a and b; the other one if one is NaN";
  static constexpr bool integers = true;
  static constexpr Saves saves = Saves::operands;
  template <class V>
  RG_HD static V fwd(V a, V b, const Attrs&) {
    return math::select(math::isnan(a), b, math::select(math::isnan(b), a, math::maximum(a, b)));
  }
  static Tensor chain(const Point& p, int i, const Tensor& t);
};

struct Fmin : Elementwise<2>, ChainRule<Fmin> {
  static constexpr std::string_view name = "fmin",
                                    doc = "the smaller of a and b; the other one if one is NaN";
  static constexpr bool integers = true;
  static constexpr Saves saves = Saves::operands;
  template <class V>
  RG_HD static V fwd(V a, V b, const Attrs&) {
    return math::select(math::isnan(a), b, math::select(math::isnan(b), a, math::minimum(a, b)));
  }
  static Tensor chain(const Point& p, int i, const Tensor& t);
};

/// g where a is the extremum of a and b, half of it where they are equal, else 0. NaN is never the extremum.
struct FextremumBackward : Elementwise<3>, ChainRule<FextremumBackward> {
  struct Attrs {
    bool largest = true;
    void visit(AttrVisitor& v) { v.field("largest", largest); }
  };
  static constexpr std::string_view name = "fextremum_backward",
                                    doc = "the gradient of fmax(a, b) or fmin(a, b) by a, from (g, a, b)";
  static constexpr std::string_view operands = "g, a, b";
  static SaveSet saves_for(const Call&, uint64_t wants) { return {wants & 1 ? uint64_t{6} : 0, 0}; }
  template <class V>
  RG_HD static V fwd(V g, V a, V b, const Attrs& attrs) {
    const V high = attrs.largest ? a : b, low = attrs.largest ? b : a;
    return math::select((high > low) | math::isnan(b), g, math::select(a == b, g * V(0.5), 0));
  }
  static Tensor chain(const Point& p, int i, const Tensor& t);
};

/// |a - b| <= atol + |rtol b|, or a equals b.
struct IsClose : Elementwise<2> {
  struct Attrs {
    Scalar rtol = 1e-5, atol = 1e-8;
    bool equal_nan = false;
    void visit(AttrVisitor& v) {
      v.field("rtol", rtol);
      v.field("atol", atol);
      v.field("equal_nan", equal_nan);
    }
  };
  static constexpr std::string_view name = "isclose", doc = "|a - b| <= atol + rtol |b|, or a == b";
  static constexpr Promotion promotion = Promotion::boolean;
  static constexpr auto infer = infer_boolean;
  static constexpr std::string_view no_derivative = "it gives bool";
  template <class V>
  RG_HD static auto fwd(V a, V b, const Attrs& attrs) {
    const V distance = math::abs(a - b),
            allowed = math::number<V>(attrs.atol) + math::abs(math::number<V>(attrs.rtol) * b);
    const auto close = (a == b) | (math::isfinite(distance) & (distance <= allowed));
    return attrs.equal_nan ? close | (math::isnan(a) & math::isnan(b)) : close;
  }
};

using FloatOps = OpList<Signbit, IsPosInf, IsNegInf, Copysign, Heaviside, Nextafter, Ldexp, Fmax, Fmin,
                        FextremumBackward, IsClose>;

}  // namespace ops

/// These give bool, for any dtype; false for unsigned dtypes and bool.
inline Tensor signbit(const Operand& x) { return ops::Function<ops::Signbit>()(x); }
inline constexpr ops::Function<ops::IsPosInf> isposinf;
inline constexpr ops::Function<ops::IsNegInf> isneginf;
/// |input| with the sign of other, a tensor that broadcasts or a number. Integers give float32.
inline Tensor copysign(const Operand& a, const Operand& b) { return ops::Function<ops::Copysign>()(a, b); }
/// Extrema that are NaN only where both operands are, of tensors that broadcast and promote; integers stay integers.
inline Tensor fmax(const Operand& a, const Operand& b) { return ops::Function<ops::Fmax>()(a, b); }
inline Tensor fmin(const Operand& a, const Operand& b) { return ops::Function<ops::Fmin>()(a, b); }
/// 0, values or 1 for an input below, at or above 0 (0 for NaN). Error(dtype_mismatch) for different dtypes.
Tensor heaviside(Operand input, Operand values);
/// The number next to input in the direction of other: float32, float64 or bfloat16, else Error(dtype_mismatch). The
/// gradient goes to input where the two differ.
Tensor nextafter(Operand input, Operand other);
/// input * 2^other, in input's dtype if that is floating, else float32; no intermediate result leaves the range.
Tensor ldexp(Operand input, Operand other);
/// |input - other| <= atol + rtol * |other| as bool, or input == other; NaN is close to NaN if equal_nan. Shapes
/// broadcast. Error(dtype_mismatch) for different dtypes, Error(bad_argument) for a negative tolerance.
Tensor isclose(Operand input, Operand other, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false);
/// Whether all elements are close, as a bool tensor without dims: a traced function may not read it.
Condition allclose(Operand input, Operand other, double rtol = 1e-5, double atol = 1e-8,
                   bool equal_nan = false);
/// Whether shapes and all elements are equal, as a bool tensor without dims. NaN equals nothing. Error(dtype_mismatch)
/// for different dtypes.
Condition equal(Operand input, Operand other);

}  // namespace retrograd
#pragma GCC visibility pop

// ---- derivatives: compiled in ops/derivatives.cc alone, as they use functions of other families ----
#ifdef RG_DERIVATIVES

#include <numbers>

#include "ops/arithmetic.h"
#include "ops/comparison.h"
#include "ops/ternary.h"

namespace retrograd::inline v0::ops {

Tensor Copysign::chain(const Point& p, int i, const Tensor& t) {
  return i == 0 ? t * (sign(p.in(0)) * sign(p.out())) : zero_chain(p, i);
}

Tensor Nextafter::chain(const Point& p, int i, const Tensor& t) {
  return i == 0 ? where(ne(p.in(0), p.in(1)), t, 0) : zero_chain(p, i);
}

Tensor Ldexp::chain(const Point& p, int i, const Tensor& t) {
  if (i == 0) return emit<Ldexp>({t.get(), p.in(1).tensor().get()}, {}, p.where());
  const Widened wide(t);
  return wide.back(wide(t) * (wide(p.out()) * std::numbers::ln2));
}

namespace {

Tensor fextremum_backward(const Point& p, int i, const Tensor& t, bool largest) {
  return emit<FextremumBackward>({t.get(), p.in(i).tensor().get(), p.in(1 - i).tensor().get()}, {largest},
                                 p.where());
}

}  // namespace

Tensor Fmax::chain(const Point& p, int i, const Tensor& t) { return fextremum_backward(p, i, t, true); }
Tensor Fmin::chain(const Point& p, int i, const Tensor& t) { return fextremum_backward(p, i, t, false); }

Tensor FextremumBackward::chain(const Point& p, int i, const Tensor& t) {
  if (i > 0) return zero_chain(p, i);
  return emit<FextremumBackward>({t.get(), p.in(1).tensor().get(), p.in(2).tensor().get()}, p.attrs<Attrs>(),
                                 p.where());
}

}  // namespace retrograd::ops

#endif  // RG_DERIVATIVES
