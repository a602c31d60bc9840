// Functions of two operands beyond arithmetic: powers, extrema, remainders, angles. Operands broadcast and
// promote; at most one is a number. Derivatives are PyTorch's: an extremum of equal operands gives each half
// of the gradient; a remainder is a - q b with a constant q.
#pragma once

#include "ops/elementwise.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {
namespace ops {

/// A differentiable op of two tensors, both of which it saves unless it says otherwise.
template <class F>
struct SmoothBinary : Elementwise<2>, ChainRule<F> {
  static constexpr Saves saves = Saves::operands;
};

/// a^b, for b a tensor; a number as exponent is PowScalar.
struct Pow : Binary, ChainRule<Pow> {
  static constexpr std::string_view name = "pow", doc = "a^b";
  static constexpr auto cast_policy = CastPolicy::float32;
  static constexpr bool integers = true, booleans = false;
  static constexpr Saves saves = Saves::both;
  template <class V>
  RG_HD static V fwd(V a, V b, const Attrs&) {
    return math::pow(a, b);
  }
  static Tensor chain(const Point& p, int i, const Tensor& t);
};

struct Atan2 : SmoothBinary<Atan2> {
  static constexpr std::string_view name = "atan2", doc = "angle of the point (b, a), in radians";
  static constexpr Promotion promotion = Promotion::floating;
  template <class V>
  RG_HD static V fwd(V a, V b, const Attrs&) {
    return math::atan2(a, b);
  }
  static Tensor chain(const Point& p, int i, const Tensor& t);
};

/// g b / (a^2 + b^2), and 0 at the origin and at infinity: the gradient of atan2(a, b) by a. With a and b exchanged and
/// the sign changed it is the gradient by b.
struct Atan2Backward : Elementwise<3>, ChainRule<Atan2Backward> {
  static constexpr std::string_view name = "atan2_backward",
                                    doc = "the gradient of atan2(a, b) by a, from (g, a, b)";
  static constexpr std::string_view operands = "g, a, b";
  static SaveSet saves_for(const Call&, uint64_t wants) { return {wants & 6 ? uint64_t{7} : 6, 0}; }
  template <class V>
  RG_HD static V fwd(V g, V a, V b, const Attrs&) {
    const V size = math::maximum(math::abs(a), math::abs(b));
    const V u = a / size, v = b / size;
    return math::select((size == 0) | math::isinf(size), 0, g / size * v / (u * u + v * v));
  }
  static Tensor chain(const Point& p, int i, const Tensor& t);
};

struct Hypot : SmoothBinary<Hypot> {
  static constexpr std::string_view name = "hypot", doc = "sqrt(a^2 + b^2)";
  static constexpr Promotion promotion = Promotion::floating;
  static constexpr Saves saves = Saves::both;
  template <class V>
  RG_HD static V fwd(V a, V b, const Attrs&) {
    return math::hypot(a, b);
  }
  static Tensor chain(const Point& p, int i, const Tensor& t);
};

struct Logaddexp : SmoothBinary<Logaddexp> {
  static constexpr std::string_view name = "logaddexp", doc = "log(e^a + e^b)";
  static constexpr Promotion promotion = Promotion::floating;
  template <class V>
  RG_HD static V fwd(V a, V b, const Attrs&) {
    // Equal infinities would give inf - inf.
    const V distance = math::select(a == b, 0, math::abs(a - b));
    return math::maximum(a, b) + math::log1p(math::exp(-distance));
  }
  static Tensor chain(const Point& p, int i, const Tensor& t);
};

struct Maximum : SmoothBinary<Maximum> {
  static constexpr std::string_view name = "maximum", doc = "the larger of a and b; NaN if either is";
  static constexpr bool integers = true;
  template <class V>
  RG_HD static V fwd(V a, V b, const Attrs&) {
    return math::maximum(a, b);
  }
  static Tensor chain(const Point& p, int i, const Tensor& t);
};

struct Minimum : SmoothBinary<Minimum> {
  static constexpr std::string_view name = "minimum", doc = "the smaller of a and b; NaN if either is";
  static constexpr bool integers = true;
  template <class V>
  RG_HD static V fwd(V a, V b, const Attrs&) {
    return math::minimum(a, b);
  }
  static Tensor chain(const Point& p, int i, const Tensor& t);
};

/// g where a > b, half of it where they are equal, else 0: the gradient of an extremum by one of its operands.
struct ExtremumBackward : Elementwise<3>, ChainRule<ExtremumBackward> {
  static constexpr std::string_view name = "extremum_backward",
                                    doc = "the gradient of maximum(a, b) by a, from (g, a, b)";
  static constexpr std::string_view operands = "g, a, b";
  static constexpr Saves saves = Saves::operands;
  static SaveSet saves_for(const Call&, uint64_t wants) { return {wants & 1 ? uint64_t{6} : 0, 0}; }
  template <class V>
  RG_HD static V fwd(V g, V a, V b, const Attrs&) {
    return math::select(a < b, 0, math::select(a == b, g * V(0.5), g));
  }
  static Tensor chain(const Point& p, int i, const Tensor& t);
};

/// A remainder a - q(a, b) * b.
template <class F>
struct RemainderOf : Binary, ChainRule<F> {
  static constexpr bool integers = true, booleans = false, divides = true;
  static SaveSet saves_for(const Call&, uint64_t wants) { return {wants & 2 ? uint64_t{3} : 0, 0}; }
};

struct Fmod : RemainderOf<Fmod> {
  static constexpr std::string_view name = "fmod",
                                    doc = "what a / b leaves, rounded toward zero; the sign of a";
  template <class V>
  RG_HD static V fwd(V a, V b, const Attrs&) {
    return math::fmod(a, b);
  }
  static Tensor chain(const Point& p, int i, const Tensor& t);
};

struct Remainder : RemainderOf<Remainder> {
  static constexpr std::string_view name = "remainder",
                                    doc = "what a / b leaves, rounded down; the sign of b";
  template <class V>
  RG_HD static V fwd(V a, V b, const Attrs&) {
    return math::remainder(a, b);
  }
  static Tensor chain(const Point& p, int i, const Tensor& t);
};

using BinaryOps =
    OpList<Pow, Atan2, Atan2Backward, Hypot, Logaddexp, Maximum, Minimum, ExtremumBackward, Fmod, Remainder>;

}  // namespace ops

/// Integers give float32.
inline Tensor atan2(const Operand& a, const Operand& b) { return ops::Function<ops::Atan2>()(a, b); }
inline Tensor hypot(const Operand& a, const Operand& b) { return ops::Function<ops::Hypot>()(a, b); }
inline constexpr ops::Function<ops::Logaddexp> logaddexp;
/// These keep integers. fmod and remainder of integers by 0: Error(bad_argument).
inline constexpr ops::Function<ops::Maximum> maximum;
inline constexpr ops::Function<ops::Minimum> minimum;
inline Tensor fmod(const Operand& a, const Operand& b) { return ops::Function<ops::Fmod>()(a, b); }
inline Tensor remainder(const Operand& a, const Operand& b) { return ops::Function<ops::Remainder>()(a, b); }

/// input^exponent; integers stay integers. Error(bad_argument) for integers to a negative integer number.
Tensor pow(Operand input, Operand exponent);

}  // namespace retrograd
#pragma GCC visibility pop

// ---- derivatives: compiled in ops/derivatives.cc alone, as they use functions of other families ----
#ifdef RG_DERIVATIVES

#include <limits>

#include "ops/activations.h"
#include "ops/arithmetic.h"
#include "ops/comparison.h"
#include "ops/creation.h"
#include "ops/ternary.h"
#include "ops/unary.h"

namespace retrograd::inline v0::ops {

// By a: b a^(b-1), and 0 where b = 0 (not 0 * inf). By b: a^b log a, and 0 where a = 0 and b >= 0.
Tensor Pow::chain(const Point& p, int i, const Tensor& t) {
  const Widened wide(t);
  const Operand a = p.in(0);
  const Tensor b = wide(p.in(1).tensor());
  if (i == 0) return wide.back(where(eq(b, 0), 0, wide(t) * (b * pow(wide(a.tensor()), b - 1))));
  const Tensor base =
      a.is_scalar() ? scalar_tensor(a.scalar(), {b.dtype(), b.device()}, p.where()) : wide(a.tensor());
  return wide.back(wide(t) * where(logical_and(eq(base, 0), ge(b, 0)), 0, wide(p.out()) * log(base)));
}

namespace {

Tensor atan2_backward(const Tensor& g, const Tensor& a, const Tensor& b, SourceLocation where) {
  return emit<Atan2Backward>({g.get(), a.get(), b.get()}, {}, where);
}

}  // namespace

Tensor Atan2::chain(const Point& p, int i, const Tensor& t) {
  const Tensor a = p.in(0).tensor(), b = p.in(1).tensor();
  return i == 0 ? atan2_backward(t, a, b, p.where()) : -atan2_backward(t, b, a, p.where());
}

// With r^2 = a^2 + b^2, by a: -2 t g (b / r^2) (a / r^2). By b: t g (a^2 - b^2) / r^4 = 4 t g (s / (s^2 + d^2)) (d /
// (s^2 + d^2)) for s = a + b, d = a - b.
Tensor Atan2Backward::chain(const Point& p, int i, const Tensor& t) {
  if (i == 0) return atan2_backward(t, p.in(1).tensor(), p.in(2).tensor(), p.where());
  const Widened wide(t);
  const Tensor g = wide(p.in(0).tensor()), a = wide(p.in(1).tensor()), b = wide(p.in(2).tensor());
  // g (v / (u^2 + v^2)) (u / (u^2 + v^2))
  const auto twice = [&](const Tensor& u, const Tensor& v) {
    return atan2_backward(atan2_backward(g, u, v, p.where()), v, u, p.where());
  };
  return wide.back(i == 1 ? twice(a, b) * wide(t) * -2 : twice(a + b, a - b) * wide(t) * 4);
}

Tensor Hypot::chain(const Point& p, int i, const Tensor& t) { return t * (p.in(i) / p.out()); }

Tensor Logaddexp::chain(const Point& p, int i, const Tensor& t) { return t * sigmoid(p.in(i)-p.in(1 - i)); }

Tensor Maximum::chain(const Point& p, int i, const Tensor& t) {
  return emit<ExtremumBackward>({t.get(), p.in(i).tensor().get(), p.in(1 - i).tensor().get()}, {}, p.where());
}

Tensor Minimum::chain(const Point& p, int i, const Tensor& t) {
  return emit<ExtremumBackward>({t.get(), p.in(1 - i).tensor().get(), p.in(i).tensor().get()}, {}, p.where());
}

Tensor ExtremumBackward::chain(const Point& p, int i, const Tensor& t) {
  if (i > 0) return zero_chain(p, i);
  return emit<ExtremumBackward>({t.get(), p.in(1).tensor().get(), p.in(2).tensor().get()}, {}, p.where());
}

Tensor Fmod::chain(const Point& p, int i, const Tensor& t) {
  return i == 0 ? t : -t * div(p.in(0), p.in(1), "trunc");
}

Tensor Remainder::chain(const Point& p, int i, const Tensor& t) {
  return i == 0 ? t : -t * div(p.in(0), p.in(1), "floor");
}

}  // namespace retrograd::ops

#endif  // RG_DERIVATIVES
