// A vector register of float or double: the element type V of every CPU kernel formula.
//
// Vec<T> wraps one GCC vector of 16 bytes (baseline x86-64), 32 (AVX2) or 64 (AVX-512), Mask<T> the integer
// vector of the same shape that comparisons give (all ones or all zeros a lane). Files that include this
// header are compiled once per instruction set with -DRG_ISA=baseline|avx2|avx512 and the matching -march;
// all names live in retrograd::cpu::RG_ISA, so no inline function of one level can be linked into another.
// For the same reason nothing of the standard library that emits code is used here: a std:: template compiled
// for AVX-512 would be merged with the baseline's copy and crash on older machines.
//
// Invariants:
// - A vector is always full. Tails and strides go through a padded tile of the caller, so that each element
//   is computed by the same instructions wherever it lies.
// - a * b + c rounds twice on every level (built with -ffp-contract=off). fused() rounds once where the level
//   can; the elementary functions use it inside, with the same error bounds on every level.
// - The lane order of reduce_add is fixed for one width: sums differ in bits between levels, never between
//   runs.
//
// Formulas are written once over V, e.g. `template <class V> V fwd(V x) { return 1 - x * 0.5; }`: scalars
// convert implicitly (as later arguments of the functions below, too). Elementary functions are in
// cpu/vec/vec_math.h.
#pragma once

#include <cstdint>

#include "cpu/vec/vec_native.h"

namespace retrograd::inline v0::cpu::RG_ISA {

/// The IEEE format of T and its vector types: `mantissa` bits are stored explicitly. (GCC loses the vector
/// attribute of a typedef that depends on a template parameter, hence two written out specialisations.)
template <class T>
struct Format;

template <>
struct Format<float> {
  typedef float Native __attribute__((vector_size(kVectorBytes)));
  typedef float Unaligned __attribute__((vector_size(kVectorBytes), aligned(alignof(float)), may_alias));
  typedef int32_t Ints __attribute__((vector_size(kVectorBytes)));
  typedef uint32_t Bits __attribute__((vector_size(kVectorBytes)));
  static constexpr int mantissa = 23;
  static constexpr int bias = 127;
};

template <>
struct Format<double> {
  typedef double Native __attribute__((vector_size(kVectorBytes)));
  typedef double Unaligned __attribute__((vector_size(kVectorBytes), aligned(alignof(double)), may_alias));
  typedef int64_t Ints __attribute__((vector_size(kVectorBytes)));
  typedef uint64_t Bits __attribute__((vector_size(kVectorBytes)));
  static constexpr int mantissa = 52;
  static constexpr int bias = 1023;
};

/// One boolean a lane, stored as all ones or all zeros of T's width.
template <class T>
struct Mask {
  using Native = typename Format<T>::Ints;

  Mask() = default;
  explicit Mask(Native native) : v(native) {}

  friend Mask operator&(Mask a, Mask b) { return Mask(a.v & b.v); }
  friend Mask operator|(Mask a, Mask b) { return Mask(a.v | b.v); }
  friend Mask operator^(Mask a, Mask b) { return Mask(a.v ^ b.v); }
  friend Mask operator!(Mask a) { return Mask(~a.v); }

  Native v;
};

template <class T>
struct Vec {
  using Native = typename Format<T>::Native;
  using Ints = typename Format<T>::Ints;
  using Bits = typename Format<T>::Bits;
  using Scalar = T;
  static constexpr int size = kVectorBytes / static_cast<int>(sizeof(T));

  Vec() = default;
  /// The same value in all lanes; implicit, so that `1 - x * 0.5` compiles. Subtracting 0 keeps -0.
  Vec(T value) : v(value - Native{}) {}
  explicit Vec(Native native) : v(native) {}
  explicit Vec(Ints bits) : v(reinterpret_cast<Native>(bits)) {}
  explicit Vec(Bits bits) : v(reinterpret_cast<Native>(bits)) {}

  /// Reads or writes `size` elements; the pointer needs the alignment of T only.
  static Vec load(const T* p) {
    return Vec(static_cast<Native>(*reinterpret_cast<const typename Format<T>::Unaligned*>(p)));
  }
  void store(T* p) const { *reinterpret_cast<typename Format<T>::Unaligned*>(p) = v; }

  Ints ints() const { return reinterpret_cast<Ints>(v); }
  Bits bits() const { return reinterpret_cast<Bits>(v); }

  friend Vec operator+(Vec a, Vec b) { return Vec(a.v + b.v); }
  friend Vec operator-(Vec a, Vec b) { return Vec(a.v - b.v); }
  friend Vec operator*(Vec a, Vec b) { return Vec(a.v * b.v); }
  friend Vec operator/(Vec a, Vec b) { return Vec(a.v / b.v); }
  friend Vec operator-(Vec a) { return Vec(-a.v); }
  Vec& operator+=(Vec b) { return *this = *this + b; }
  Vec& operator-=(Vec b) { return *this = *this - b; }
  Vec& operator*=(Vec b) { return *this = *this * b; }
  Vec& operator/=(Vec b) { return *this = *this / b; }

  friend Mask<T> operator==(Vec a, Vec b) { return Mask<T>(a.v == b.v); }
  friend Mask<T> operator!=(Vec a, Vec b) { return Mask<T>(a.v != b.v); }
  friend Mask<T> operator<(Vec a, Vec b) { return Mask<T>(a.v < b.v); }
  friend Mask<T> operator<=(Vec a, Vec b) { return Mask<T>(a.v <= b.v); }
  friend Mask<T> operator>(Vec a, Vec b) { return Mask<T>(a.v > b.v); }
  friend Mask<T> operator>=(Vec a, Vec b) { return Mask<T>(a.v >= b.v); }

  static Bits sign_bits() { return Vec(static_cast<T>(-0.0)).bits(); }

  Native v;
};

/// Vec<T> where T is known from another argument, so that scalars convert.
template <class T>
struct VecOf {
  using Type = Vec<T>;
};
template <class T>
using Operand = typename VecOf<T>::Type;

/// a where the mask is set, b elsewhere. Both are computed.
template <class T>
Vec<T> select(Mask<T> mask, Operand<T> a, Operand<T> b) {
  return Vec<T>(mask.v ? a.v : b.v);
}

template <class T>
Vec<T> abs(Vec<T> x) {
  return Vec<T>(x.bits() & ~x.sign_bits());
}

/// The magnitude of x with the sign of `sign`, zeros and NaN included.
template <class T>
Vec<T> copysign(Vec<T> x, Operand<T> sign) {
  return Vec<T>((x.bits() & ~x.sign_bits()) | (sign.bits() & x.sign_bits()));
}

template <class T>
Mask<T> isnan(Vec<T> x) {
  return x != x;
}

template <class T>
Mask<T> isinf(Vec<T> x) {
  return abs(x) == static_cast<T>(__builtin_inf());
}

template <class T>
Mask<T> isfinite(Vec<T> x) {
  return abs(x) < static_cast<T>(__builtin_inf());
}

template <class T>
Mask<T> signbit(Vec<T> x) {
  return Mask<T>(x.ints() < 0);
}

template <class T>
Vec<T> sqrt(Vec<T> x) {
  return Vec<T>(native_sqrt(x.v));
}

/// a * b + c, rounded once where the level has such an instruction, else twice.
template <class T>
[[gnu::always_inline]] inline Vec<T> fused(Vec<T> a, Operand<T> b, Operand<T> c) {
  return Vec<T>(native_fused(a.v, b.v, c.v));
}

/// torch.maximum and torch.minimum: NaN if either operand is NaN; of +0 and -0 the second operand.
template <class T>
Vec<T> maximum(Vec<T> a, Operand<T> b) {
  return select(isnan(a), a, Vec<T>(native_max(a.v, b.v)));
}

template <class T>
Vec<T> minimum(Vec<T> a, Operand<T> b) {
  return select(isnan(a), a, Vec<T>(native_min(a.v, b.v)));
}

/// The larger number, in one instruction; b where either operand is NaN.
template <class T>
Vec<T> larger(Vec<T> a, Operand<T> b) {
  return Vec<T>(native_max(a.v, b.v));
}

/// x kept within [low, high]; NaN stays NaN.
template <class T>
Vec<T> clamp(Vec<T> x, Operand<T> low, Operand<T> high) {
  return Vec<T>(native_max(low.v, native_min(high.v, x.v)));
}

/// The smaller of x and high; NaN stays NaN.
template <class T>
Vec<T> at_most(Vec<T> x, Operand<T> high) {
  return Vec<T>(native_min(high.v, x.v));
}

/// Rounds to an integer in the same type, ties to even; a zero result keeps the sign of x.
template <class T>
Vec<T> nearbyint(Vec<T> x) {
  if constexpr (kRounds) {
    return Vec<T>(native_nearest(x.v));
  } else {
    // Adding 2^mantissa leaves no bits for a fraction; larger magnitudes, inf and NaN are integers already.
    const Vec<T> big = static_cast<T>(int64_t{1} << Format<T>::mantissa);
    const Vec<T> magnitude = abs(x);
    return select(magnitude < big, copysign((magnitude + big) - big, x), x);
  }
}

/// These keep the sign of a zero result, too.
template <class T>
Vec<T> floor(Vec<T> x) {
  if constexpr (kRounds) {
    return Vec<T>(native_floor(x.v));
  } else {
    const Vec<T> r = nearbyint(x);
    return copysign(r - select(r > x, 1, 0), x);
  }
}

template <class T>
Vec<T> ceil(Vec<T> x) {
  return -floor(-x);
}

template <class T>
Vec<T> trunc(Vec<T> x) {
  if constexpr (kRounds)
    return Vec<T>(native_trunc(x.v));
  else
    return copysign(floor(abs(x)), x);
}

/// True if any lane is set; `all` if every one is.
template <class T>
bool any(Mask<T> mask) {
  typedef long long Whole __attribute__((vector_size(kVectorBytes)));
  return native_any(reinterpret_cast<Whole>(mask.v));
}

template <class T>
bool all(Mask<T> mask) {
  return !any(!mask);
}

/// f over all lanes, in every lane: halves are folded onto each other, ((0+4)+(2+6)) + ((1+5)+(3+7)) for eight
/// lanes. f is commutative.
template <int half, class T, class F>
[[gnu::always_inline]] inline Vec<T> fold_lanes(Vec<T> x, const F& f) {
  if constexpr (half == 0) {
    return x;
  } else {
    typename Vec<T>::Ints order{};
#pragma GCC unroll 16
    for (int i = 0; i < Vec<T>::size; ++i) order[i] = i ^ half;
    return fold_lanes<half / 2>(f(x, Vec<T>(__builtin_shuffle(x.v, order))), f);
  }
}

template <class T>
[[gnu::always_inline]] inline T reduce_add(Vec<T> x) {
  return fold_lanes<Vec<T>::size / 2>(x, [](Vec<T> a, Vec<T> b) { return a + b; }).v[0];
}

/// NaN if any lane is NaN.
template <class T>
[[gnu::always_inline]] inline T reduce_max(Vec<T> x) {
  return fold_lanes<Vec<T>::size / 2>(x, [](Vec<T> a, Vec<T> b) { return maximum(a, b); }).v[0];
}

template <class T>
[[gnu::always_inline]] inline T reduce_min(Vec<T> x) {
  return fold_lanes<Vec<T>::size / 2>(x, [](Vec<T> a, Vec<T> b) { return minimum(a, b); }).v[0];
}

/// A float vector as two double vectors, exactly: lanes [0, size/2) in `low`, the rest in `high`.
struct WidePair {
  Vec<double> low;
  Vec<double> high;
};

inline WidePair widen(Vec<float> x) {
  return {Vec<double>(native_low_half(x.v)), Vec<double>(native_high_half(x.v))};
}

/// Rounds each lane to float, ties to even.
inline Vec<float> narrow(WidePair x) { return Vec<float>(native_join(x.low.v, x.high.v)); }

/// Applies a scalar function lane by lane: the slow path of rare functions and arguments.
template <class T, class F, class... Rest>
Vec<T> map_lanes(F f, Vec<T> x, Rest... rest) {
  Vec<T> result;
  for (int i = 0; i < Vec<T>::size; ++i) result.v[i] = f(x.v[i], rest.v[i]...);
  return result;
}

}  // namespace retrograd::cpu::RG_ISA
