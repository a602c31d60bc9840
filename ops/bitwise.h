// Functions of integers: bits, shifts, divisors. Operands broadcast and promote; at most one is a number. Elements are
// computed as 64-bit integers and wrap around to their dtype. Nothing here has a derivative or takes floating numbers.
// These ops are not in ElementwiseFamilies, whose members all have formulas of floating numbers.
#pragma once

#include "ops/elementwise.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

#if defined(RG_ISA) || defined(RG_FORMULAS)
namespace math {

template <class V>
RG_HD V gcd(V a, V b) {
  a = math::abs(a), b = math::abs(b);
  while (b != 0) {
    const V rest = math::fmod(a, b);
    a = b;
    b = rest;
  }
  return a;
}
template <class V>
RG_HD V lcm(V a, V b) {
  return math::abs(math::trunc_divide(a, gcd(a, b)) * b);  // trunc_divide by 0 gives 0
}
/// Shifts by less than 0 or more than 63 move all bits out.
template <class V>
RG_HD V shifted_left(V a, V b) {
  return b.v < 0 || b.v > 63 ? V(0) : V::wrap(a.u() << b.v);
}
template <class V>
RG_HD V shifted_right(V a, V b) {
  return V(a.v >> (b.v < 0 || b.v > 63 ? 63 : b.v));
}

}  // namespace math
#else
namespace math {
inline constexpr Named gcd, lcm, shifted_left, shifted_right;
}
#endif

namespace ops {

/// `booleans`: whether it takes bool, too. Error(dtype_mismatch) for other operands than integers.
void infer_integers(const Call& call, TensorImpl* const* outputs, bool booleans);

/// `integers_only`: it has no kernels of floating numbers.
template <bool takes_bool>
struct OfIntegers : Binary {
  static constexpr bool integers = true, booleans = takes_bool, integers_only = true;
  static constexpr std::string_view no_derivative = "it is a function of integers";
  static constexpr std::string_view example = "i64[2,3], i64[2,3] : i64[2,3]";
  static void infer(const Call& call, TensorImpl* const* outputs) {
    infer_integers(call, outputs, takes_bool);
  }
};

struct BitwiseAnd : OfIntegers<true> {
  static constexpr std::string_view name = "bitwise_and", doc = "bits that a and b have";
  template <class V>
  RG_HD static V fwd(V a, V b, const Attrs&) {
    return V(a.v & b.v);
  }
};

struct BitwiseOr : OfIntegers<true> {
  static constexpr std::string_view name = "bitwise_or", doc = "bits that a or b has";
  template <class V>
  RG_HD static V fwd(V a, V b, const Attrs&) {
    return V(a.v | b.v);
  }
};

struct BitwiseXor : OfIntegers<true> {
  static constexpr std::string_view name = "bitwise_xor", doc = "bits that exactly one of a and b has";
  template <class V>
  RG_HD static V fwd(V a, V b, const Attrs&) {
    return V(a.v ^ b.v);
  }
};

struct BitwiseLeftShift : OfIntegers<false> {
  static constexpr std::string_view name = "bitwise_left_shift", doc = "a * 2^b; 0 for b < 0";
  template <class V>
  RG_HD static V fwd(V a, V b, const Attrs&) {
    return math::shifted_left(a, b);
  }
};

struct BitwiseRightShift : OfIntegers<false> {
  static constexpr std::string_view name = "bitwise_right_shift",
                                    doc = "a / 2^b rounded down; 0 or -1 for b < 0";
  template <class V>
  RG_HD static V fwd(V a, V b, const Attrs&) {
    return math::shifted_right(a, b);
  }
};

struct Gcd : OfIntegers<false> {
  static constexpr std::string_view name = "gcd", doc = "greatest common divisor, not negative";
  template <class V>
  RG_HD static V fwd(V a, V b, const Attrs&) {
    return math::gcd(a, b);
  }
};

struct Lcm : OfIntegers<false> {
  static constexpr std::string_view name = "lcm",
                                    doc = "least common multiple, not negative; 0 if a or b is 0";
  template <class V>
  RG_HD static V fwd(V a, V b, const Attrs&) {
    return math::lcm(a, b);
  }
};

using BitwiseOps = OpList<BitwiseAnd, BitwiseOr, BitwiseXor, BitwiseLeftShift, BitwiseRightShift, Gcd, Lcm>;

}  // namespace ops

/// Integers and bool; Error(dtype_mismatch) for floating operands.
inline constexpr ops::Function<ops::BitwiseAnd> bitwise_and;
inline constexpr ops::Function<ops::BitwiseOr> bitwise_or;
inline constexpr ops::Function<ops::BitwiseXor> bitwise_xor;
/// The other bits; of bool, the other value.
Tensor bitwise_not(Operand input);
/// Integers; Error(dtype_mismatch) for bool and floating operands. Shifts by less than 0 or by all bits and more move
/// all bits out.
inline constexpr ops::Function<ops::BitwiseLeftShift> bitwise_left_shift;
inline constexpr ops::Function<ops::BitwiseRightShift> bitwise_right_shift;
inline constexpr ops::Function<ops::Gcd> gcd;
inline constexpr ops::Function<ops::Lcm> lcm;

}  // namespace retrograd
#pragma GCC visibility pop
