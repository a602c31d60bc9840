// Functions of one operand: powers, exponentials, trigonometry, special functions, rounding, tests.
// Functions of the reals convert integers to float32 (Smooth); abs, square, sign and the roundings keep the dtype;
// tests give bool. Derivatives, at the end, are those of PyTorch's derivatives.yaml: at abs(0) it is 0, of steps it is
// 0 everywhere. One file of over 600 lines, since all parts of an op are in one place and its family is one list.
#pragma once

#include <optional>

#include "ops/backward.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {
namespace ops {

struct Abs : Smooth<Abs> {
  static constexpr std::string_view name = "abs", doc = "|x|; derivative sign(x)";
  static constexpr Promotion promotion = Promotion::same;
  static constexpr bool integers = true, booleans = false;
  template <class V>
  RG_HD static V fwd(V x, const Attrs&) {
    return math::abs(x);
  }
  static Tensor chain(const Point& p, int, const Tensor& t);
};

struct Square : Smooth<Square> {
  static constexpr std::string_view name = "square", doc = "x^2";
  static constexpr auto cast_policy = CastPolicy::float32;
  static constexpr Promotion promotion = Promotion::number;
  static constexpr bool integers = true;
  template <class V>
  RG_HD static V fwd(V x, const Attrs&) {
    return x * x;
  }
  static Tensor chain(const Point& p, int, const Tensor& t);
};

struct Exp : Smooth<Exp, Saves::result> {
  static constexpr std::string_view name = "exp", doc = "e^x";
  static constexpr auto cast_policy = CastPolicy::float32;
  template <class V>
  RG_HD static V fwd(V x, const Attrs&) {
    return math::exp(x);
  }
  static Tensor chain(const Point& p, int, const Tensor& t);
};

struct Exp2 : Smooth<Exp2, Saves::result> {
  static constexpr std::string_view name = "exp2", doc = "2^x";
  template <class V>
  RG_HD static V fwd(V x, const Attrs&) {
    return math::exp2(x);
  }
  static Tensor chain(const Point& p, int, const Tensor& t);
};

struct Expm1 : Smooth<Expm1, Saves::result> {
  static constexpr std::string_view name = "expm1", doc = "e^x - 1, exact near 0";
  static constexpr auto cast_policy = CastPolicy::float32;
  template <class V>
  RG_HD static V fwd(V x, const Attrs&) {
    return math::expm1(x);
  }
  static Tensor chain(const Point& p, int, const Tensor& t);
};

struct Log : Smooth<Log> {
  static constexpr std::string_view name = "log", doc = "natural logarithm";
  static constexpr auto cast_policy = CastPolicy::float32;
  template <class V>
  RG_HD static V fwd(V x, const Attrs&) {
    return math::log(x);
  }
  static Tensor chain(const Point& p, int, const Tensor& t);
};

struct Log2 : Smooth<Log2> {
  static constexpr std::string_view name = "log2", doc = "logarithm to base 2";
  static constexpr auto cast_policy = CastPolicy::float32;
  template <class V>
  RG_HD static V fwd(V x, const Attrs&) {
    return math::log2(x);
  }
  static Tensor chain(const Point& p, int, const Tensor& t);
};

struct Log10 : Smooth<Log10> {
  static constexpr std::string_view name = "log10", doc = "logarithm to base 10";
  static constexpr auto cast_policy = CastPolicy::float32;
  template <class V>
  RG_HD static V fwd(V x, const Attrs&) {
    return math::log10(x);
  }
  static Tensor chain(const Point& p, int, const Tensor& t);
};

struct Log1p : Smooth<Log1p> {
  static constexpr std::string_view name = "log1p", doc = "log(1 + x), exact near 0";
  static constexpr auto cast_policy = CastPolicy::float32;
  template <class V>
  RG_HD static V fwd(V x, const Attrs&) {
    return math::log1p(x);
  }
  static Tensor chain(const Point& p, int, const Tensor& t);
};

struct Sqrt : Smooth<Sqrt, Saves::result> {
  static constexpr std::string_view name = "sqrt", doc = "square root";
  template <class V>
  RG_HD static V fwd(V x, const Attrs&) {
    return math::sqrt(x);
  }
  static Tensor chain(const Point& p, int, const Tensor& t);
};

struct Rsqrt : FusedGradient<Rsqrt, Saves::result> {
  static constexpr std::string_view name = "rsqrt", doc = "1 / sqrt(x)";
  static constexpr auto cast_policy = CastPolicy::float32;
  template <class V>
  RG_HD static V fwd(V x, const Attrs&) {
    return 1 / math::sqrt(x);
  }
  template <class V>
  RG_HD static V backward(V g, V y, const Attrs&) {
    return g * y * y * (y * V(-0.5));
  }
  static Tensor curvature(const Tensor& v, const Attrs&);
};

struct Reciprocal : FusedGradient<Reciprocal, Saves::result> {
  static constexpr std::string_view name = "reciprocal", doc = "1 / x";
  static constexpr auto cast_policy = CastPolicy::float32;
  template <class V>
  RG_HD static V fwd(V x, const Attrs&) {
    return 1 / x;
  }
  template <class V>
  RG_HD static V backward(V g, V y, const Attrs&) {
    return -(g * y) * y;
  }
  static Tensor curvature(const Tensor& v, const Attrs&);
};

struct Sin : Smooth<Sin> {
  static constexpr std::string_view name = "sin", doc = "sine, x in radians";
  template <class V>
  RG_HD static V fwd(V x, const Attrs&) {
    return math::sin(x);
  }
  static Tensor chain(const Point& p, int, const Tensor& t);
};

struct Cos : Smooth<Cos> {
  static constexpr std::string_view name = "cos", doc = "cosine, x in radians";
  template <class V>
  RG_HD static V fwd(V x, const Attrs&) {
    return math::cos(x);
  }
  static Tensor chain(const Point& p, int, const Tensor& t);
};

struct Tan : FusedGradient<Tan, Saves::result> {
  static constexpr std::string_view name = "tan", doc = "tangent, x in radians";
  static constexpr auto cast_policy = CastPolicy::float32;
  template <class V>
  RG_HD static V fwd(V x, const Attrs&) {
    return math::tan(x);
  }
  template <class V>
  RG_HD static V backward(V g, V y, const Attrs&) {
    return g * (1 + y * y);
  }
  static Tensor curvature(const Tensor& v, const Attrs&);
};

struct Asin : FusedGradient<Asin> {
  static constexpr std::string_view name = "asin", doc = "arc sine";
  static constexpr auto cast_policy = CastPolicy::float32;
  template <class V>
  RG_HD static V fwd(V x, const Attrs&) {
    return math::asin(x);
  }
  template <class V>
  RG_HD static V backward(V g, V x, const Attrs&) {
    return g / math::sqrt((1 - x) * (1 + x));
  }
  static Tensor curvature(const Tensor& v, const Attrs&);
};

struct Acos : Smooth<Acos> {
  static constexpr std::string_view name = "acos", doc = "arc cosine";
  static constexpr auto cast_policy = CastPolicy::float32;
  template <class V>
  RG_HD static V fwd(V x, const Attrs&) {
    return math::acos(x);
  }
  static Tensor chain(const Point& p, int, const Tensor& t);
};

struct Atan : FusedGradient<Atan> {
  static constexpr std::string_view name = "atan", doc = "arc tangent";
  template <class V>
  RG_HD static V fwd(V x, const Attrs&) {
    return math::atan(x);
  }
  template <class V>
  RG_HD static V backward(V g, V x, const Attrs&) {
    const auto is_large = math::abs(x) > V(0x1p30);  // 1 + x^2 rounds to x^2
    V slope = g / (1 + x * x);
    if (math::any(is_large)) slope = math::select(is_large, g / x / x, slope);
    return slope;
  }
  static Tensor curvature(const Tensor& v, const Attrs&);
};

struct Sinh : Smooth<Sinh> {
  static constexpr std::string_view name = "sinh", doc = "hyperbolic sine";
  static constexpr auto cast_policy = CastPolicy::float32;
  template <class V>
  RG_HD static V fwd(V x, const Attrs&) {
    return math::sinh(x);
  }
  static Tensor chain(const Point& p, int, const Tensor& t);
};

struct Cosh : Smooth<Cosh> {
  static constexpr std::string_view name = "cosh", doc = "hyperbolic cosine";
  static constexpr auto cast_policy = CastPolicy::float32;
  template <class V>
  RG_HD static V fwd(V x, const Attrs&) {
    return math::cosh(x);
  }
  static Tensor chain(const Point& p, int, const Tensor& t);
};

struct Asinh : FusedGradient<Asinh> {
  static constexpr std::string_view name = "asinh", doc = "inverse of sinh";
  template <class V>
  RG_HD static V fwd(V x, const Attrs&) {
    return math::asinh(x);
  }
  template <class V>
  RG_HD static V backward(V g, V x, const Attrs&) {
    const V size = math::abs(x);
    return g / math::select(size > V(0x1p30), size, math::sqrt(x * x + 1));  // where x^2 + 1 rounds to x^2
  }
  static Tensor curvature(const Tensor& v, const Attrs&);
};

struct Acosh : FusedGradient<Acosh> {
  static constexpr std::string_view name = "acosh", doc = "inverse of cosh";
  template <class V>
  RG_HD static V fwd(V x, const Attrs&) {
    return math::acosh(x);
  }
  template <class V>
  RG_HD static V backward(V g, V x, const Attrs&) {
    return g / (math::sqrt(x - 1) * math::sqrt(x + 1));
  }
  static Tensor curvature(const Tensor& v, const Attrs&);
};

struct Atanh : FusedGradient<Atanh> {
  static constexpr std::string_view name = "atanh", doc = "inverse of tanh";
  template <class V>
  RG_HD static V fwd(V x, const Attrs&) {
    return math::atanh(x);
  }
  template <class V>
  RG_HD static V backward(V g, V x, const Attrs&) {
    return g / ((1 - x) * (1 + x));
  }
  static Tensor curvature(const Tensor& v, const Attrs&);
};

struct Erf : FusedGradient<Erf> {
  static constexpr double kTwoOverRootPi = 1.12837916709551257390;
  static constexpr std::string_view name = "erf", doc = "error function";
  template <class V>
  RG_HD static V fwd(V x, const Attrs&) {
    return math::erf(x);
  }
  template <class V>
  RG_HD static V backward(V g, V x, const Attrs&) {
    return g * (math::exp_of_minus_square(x) * V(kTwoOverRootPi));
  }
  static Tensor curvature(const Tensor& v, const Attrs&);
};

struct Erfc : Smooth<Erfc> {
  static constexpr std::string_view name = "erfc", doc = "1 - erf(x), exact for large x";
  template <class V>
  RG_HD static V fwd(V x, const Attrs&) {
    return math::erfc(x);
  }
  static Tensor chain(const Point& p, int, const Tensor& t);
};

struct Erfinv : Smooth<Erfinv> {
  static constexpr std::string_view name = "erfinv", doc = "inverse of erf";
  static constexpr auto cast_policy = CastPolicy::float32;
  template <class V>
  RG_HD static V fwd(V x, const Attrs&) {
    return math::erfinv(x);
  }
  static Tensor chain(const Point& p, int, const Tensor& t);
};

struct Lgamma : Smooth<Lgamma> {
  static constexpr std::string_view name = "lgamma", doc = "log |Gamma(x)|";
  template <class V>
  RG_HD static V fwd(V x, const Attrs&) {
    return math::lgamma(x);
  }
  static Tensor chain(const Point& p, int, const Tensor& t);
};

struct Digamma : Smooth<Digamma> {
  static constexpr std::string_view name = "digamma", doc = "derivative of log Gamma";
  template <class V>
  RG_HD static V fwd(V x, const Attrs&) {
    return math::digamma(x);
  }
  static Tensor chain(const Point& p, int, const Tensor& t);
};

/// The (n+1)-th derivative of log Gamma, n >= 1: the derivatives of digamma.
struct Polygamma : Smooth<Polygamma> {
  static constexpr int64_t kMost = 170;  // n! for a larger n overflows double
  struct Attrs {
    int64_t n = 1;
    void visit(AttrVisitor& v) { v.field("n", n); }
  };
  static void infer(const Call& call, TensorImpl* const* outputs);
  static constexpr std::string_view name = "polygamma", doc = "n-th derivative of digamma";
  template <class V>
  RG_HD static V fwd(V x, const Attrs& a) {
    return math::polygamma(static_cast<int>(a.n), x);
  }
  static Tensor chain(const Point& p, int, const Tensor& t);
};

/// coefficient * x^exponent, and 0 where the coefficient is 0: closed under differentiation, without a special case.
struct PowScalar : Smooth<PowScalar> {
  struct Attrs {
    Scalar exponent = 1, coefficient = 1.0;
    void visit(AttrVisitor& v) {
      v.field("exponent", exponent);
      v.field("coefficient", coefficient);
    }
  };
  static constexpr std::string_view name = "pow_scalar", doc = "coefficient * x^exponent";
  static constexpr auto cast_policy = CastPolicy::float32;
  static constexpr Promotion promotion = Promotion::same;
  static constexpr bool integers = true, booleans = false;
  template <class V>
  RG_HD static V fwd(V x, const Attrs& a) {
    if (a.coefficient.to_double() == 0) return V(0);
    return math::number<V>(a.coefficient) * math::power(x, a.exponent);
  }
  static Tensor chain(const Point& p, int, const Tensor& t);
};

/// The gradient of PowScalar for operands (g, x): g times the function. Its own derivative by x is another
/// PowScalarBackward.
struct PowScalarBackward : Elementwise<2>, ChainRule<PowScalarBackward> {
  using Attrs = PowScalar::Attrs;
  static constexpr std::string_view name = "pow_scalar_backward", doc = "g * coefficient * x^exponent";
  static constexpr std::string_view operands = "g, x";
  static SaveSet saves_for(const Call&, uint64_t wants) { return {2 | (wants >> 1 & 1), 0}; }
  template <class V>
  RG_HD static V fwd(V g, V x, const Attrs& a) {
    if (a.coefficient.to_double() == 0) return V(0);
    return math::times_power(g * math::number<V>(a.coefficient), x, a.exponent);
  }
  static Tensor chain(const Point& p, int i, const Tensor& t);
};

/// A function whose derivative is 0 wherever it has one.
template <class F>
struct Step : Smooth<F, Saves::nothing> {
  static constexpr Promotion promotion = Promotion::same;
  static constexpr bool integers = true;
  static Tensor chain(const Point& p, int i, const Tensor&) { return zero_chain(p, i); }
};

struct Sign : Step<Sign> {
  static constexpr std::string_view name = "sign", doc = "-1, 0 or 1; 0 for NaN";
  template <class V>
  RG_HD static V fwd(V x, const NoAttrs&) {
    return math::select(x > 0, 1, math::select(x < 0, -1, 0));
  }
};

struct Floor : Step<Floor> {
  static constexpr std::string_view name = "floor", doc = "largest integer not above x";
  static constexpr bool booleans = false;
  template <class V>
  RG_HD static V fwd(V x, const NoAttrs&) {
    return math::floor(x);
  }
};

struct Ceil : Step<Ceil> {
  static constexpr std::string_view name = "ceil", doc = "smallest integer not below x";
  static constexpr bool booleans = false;
  template <class V>
  RG_HD static V fwd(V x, const NoAttrs&) {
    return math::ceil(x);
  }
};

struct Trunc : Step<Trunc> {
  static constexpr std::string_view name = "trunc", doc = "integer part of x";
  static constexpr bool booleans = false;
  template <class V>
  RG_HD static V fwd(V x, const NoAttrs&) {
    return math::trunc(x);
  }
};

struct Round : Step<Round> {
  struct Attrs {
    int64_t decimals = 0;
    void visit(AttrVisitor& v) { v.field("decimals", decimals); }
  };
  static constexpr std::string_view name = "round", doc = "nearest multiple of 10^-decimals, ties to even";
  static constexpr bool booleans = false;
  template <class V>
  RG_HD static V fwd(V x, const Attrs& a) {
    return math::round_decimals(x, a.decimals);
  }
};

struct Frac : Smooth<Frac, Saves::nothing> {
  static constexpr std::string_view name = "frac", doc = "x - trunc(x)";
  static constexpr Promotion promotion = Promotion::same;
  template <class V>
  RG_HD static V fwd(V x, const Attrs&) {
    return x - math::trunc(x);
  }
  static Tensor chain(const Point&, int, const Tensor& t) { return t; }
};

/// A predicate for each element, with a bool result.
struct Test : Elementwise<1> {
  static constexpr Promotion promotion = Promotion::boolean;
  static constexpr bool integers = true;
  static constexpr auto infer = infer_boolean;
  static constexpr std::string_view no_derivative = "it gives bool";
};

struct IsNan : Test {
  static constexpr std::string_view name = "isnan", doc = "x is NaN";
  template <class V>
  RG_HD static auto fwd(V x, const Attrs&) {
    return math::isnan(x);
  }
};

struct IsInf : Test {
  static constexpr std::string_view name = "isinf", doc = "x is +inf or -inf";
  template <class V>
  RG_HD static auto fwd(V x, const Attrs&) {
    return math::isinf(x);
  }
};

struct IsFinite : Test {
  static constexpr std::string_view name = "isfinite", doc = "x is neither infinite nor NaN";
  template <class V>
  RG_HD static auto fwd(V x, const Attrs&) {
    return math::isfinite(x);
  }
};

struct LogicalNot : Test {
  static constexpr std::string_view name = "logical_not", doc = "x is zero or false";
  template <class V>
  RG_HD static auto fwd(V x, const Attrs&) {
    return x == 0;
  }
};

struct NanToNum : Smooth<NanToNum> {
  struct Attrs {
    Scalar nan, posinf, neginf;
    void visit(AttrVisitor& v) {
      v.field("nan", nan);
      v.field("posinf", posinf);
      v.field("neginf", neginf);
    }
  };
  static constexpr std::string_view name = "nan_to_num", doc = "numbers in place of NaN, inf and -inf";
  static constexpr Promotion promotion = Promotion::same;
  static constexpr bool integers = true;
  template <class V>
  RG_HD static V fwd(V x, const Attrs& a) {
    const V finite = math::select(math::isnan(x), math::number<V>(a.nan), x);
    return math::select(math::isinf(x),
                        math::select(x > 0, math::number<V>(a.posinf), math::number<V>(a.neginf)), finite);
  }
  static Tensor chain(const Point& p, int, const Tensor& t);
};

using UnaryOps =
    OpList<Abs, Square, Exp, Exp2, Expm1, Log, Log2, Log10, Log1p, Sqrt, Rsqrt, Backward<Rsqrt>, Reciprocal,
           Backward<Reciprocal>, Sin, Cos, Tan, Backward<Tan>, Asin, Backward<Asin>, Acos, Atan,
           Backward<Atan>, Sinh, Cosh, Asinh, Backward<Asinh>, Acosh, Backward<Acosh>, Atanh, Backward<Atanh>,
           Erf, Backward<Erf>, Erfc, Erfinv, Lgamma, Digamma, Polygamma, PowScalar, PowScalarBackward, Sign,
           Floor, Ceil, Trunc, Round, Frac, IsNan, IsInf, IsFinite, LogicalNot, NanToNum>;

}  // namespace ops

/// Functions of the reals: any shape; integers and bool give float32. Error(dtype_mismatch) for float8.
inline Tensor exp(const Operand& x) { return ops::Function<ops::Exp>()(x); }
inline Tensor exp2(const Operand& x) { return ops::Function<ops::Exp2>()(x); }
inline Tensor expm1(const Operand& x) { return ops::Function<ops::Expm1>()(x); }
inline Tensor log(const Operand& x) { return ops::Function<ops::Log>()(x); }
inline Tensor log2(const Operand& x) { return ops::Function<ops::Log2>()(x); }
inline Tensor log10(const Operand& x) { return ops::Function<ops::Log10>()(x); }
inline Tensor log1p(const Operand& x) { return ops::Function<ops::Log1p>()(x); }
inline Tensor sqrt(const Operand& x) { return ops::Function<ops::Sqrt>()(x); }
inline constexpr ops::Function<ops::Rsqrt> rsqrt;
inline constexpr ops::Function<ops::Reciprocal> reciprocal;
inline Tensor sin(const Operand& x) { return ops::Function<ops::Sin>()(x); }
inline Tensor cos(const Operand& x) { return ops::Function<ops::Cos>()(x); }
inline Tensor tan(const Operand& x) { return ops::Function<ops::Tan>()(x); }
inline Tensor asin(const Operand& x) { return ops::Function<ops::Asin>()(x); }
inline Tensor acos(const Operand& x) { return ops::Function<ops::Acos>()(x); }
inline Tensor atan(const Operand& x) { return ops::Function<ops::Atan>()(x); }
inline Tensor sinh(const Operand& x) { return ops::Function<ops::Sinh>()(x); }
inline Tensor cosh(const Operand& x) { return ops::Function<ops::Cosh>()(x); }
inline Tensor asinh(const Operand& x) { return ops::Function<ops::Asinh>()(x); }
inline Tensor acosh(const Operand& x) { return ops::Function<ops::Acosh>()(x); }
inline Tensor atanh(const Operand& x) { return ops::Function<ops::Atanh>()(x); }
inline Tensor erf(const Operand& x) { return ops::Function<ops::Erf>()(x); }
inline Tensor erfc(const Operand& x) { return ops::Function<ops::Erfc>()(x); }
inline constexpr ops::Function<ops::Erfinv> erfinv;
inline Tensor lgamma(const Operand& x) { return ops::Function<ops::Lgamma>()(x); }
inline constexpr ops::Function<ops::Digamma> digamma;
/// These keep the dtype, integers included (frac: floating only).
inline Tensor abs(const Operand& x) { return ops::Function<ops::Abs>()(x); }
inline constexpr ops::Function<ops::Square> square;
inline constexpr ops::Function<ops::Sign> sign;
inline Tensor floor(const Operand& x) { return ops::Function<ops::Floor>()(x); }
inline Tensor ceil(const Operand& x) { return ops::Function<ops::Ceil>()(x); }
inline Tensor trunc(const Operand& x) { return ops::Function<ops::Trunc>()(x); }
inline constexpr ops::Function<ops::Frac> frac;
inline Tensor round(const Operand& x, int64_t decimals = 0) {
  return ops::Function<ops::Round>()(x, decimals);
}
/// These give bool, for any dtype.
inline Tensor isnan(const Operand& x) { return ops::Function<ops::IsNan>()(x); }
inline Tensor isinf(const Operand& x) { return ops::Function<ops::IsInf>()(x); }
inline Tensor isfinite(const Operand& x) { return ops::Function<ops::IsFinite>()(x); }
inline constexpr ops::Function<ops::LogicalNot> logical_not;

/// NaN, inf and -inf replaced; posinf and neginf default to the largest and smallest finite number of the dtype.
Tensor nan_to_num(Operand x, Scalar nan = 0.0, std::optional<Scalar> posinf = {},
                  std::optional<Scalar> neginf = {});

}  // namespace retrograd
#pragma GCC visibility pop

// ---- derivatives: compiled in ops/derivatives.cc alone, as they use functions of other families ----
#ifdef RG_DERIVATIVES

#include <numbers>

#include "ops/arithmetic.h"
#include "ops/binary.h"
#include "ops/ternary.h"

namespace retrograd::inline v0::ops {

constexpr double kLn2 = std::numbers::ln2, kLn10 = std::numbers::ln10;

Tensor Abs::chain(const Point& p, int, const Tensor& t) { return t * sign(p.in(0)); }
Tensor Square::chain(const Point& p, int, const Tensor& t) { return t * p.in(0) * 2; }
Tensor Exp::chain(const Point& p, int, const Tensor& t) { return t * p.out(); }
Tensor Exp2::chain(const Point& p, int, const Tensor& t) { return t * (p.out() * kLn2); }
Tensor Expm1::chain(const Point& p, int, const Tensor& t) { return t * (p.out() + 1); }
Tensor Log::chain(const Point& p, int, const Tensor& t) { return t / p.in(0); }
Tensor Log2::chain(const Point& p, int, const Tensor& t) { return t * (1 / kLn2) / p.in(0); }
Tensor Log10::chain(const Point& p, int, const Tensor& t) { return t * (1 / kLn10) / p.in(0); }
Tensor Log1p::chain(const Point& p, int, const Tensor& t) { return t / (p.in(0) + 1); }
Tensor Sqrt::chain(const Point& p, int, const Tensor& t) { return t / (p.out() * 2); }
Tensor Sin::chain(const Point& p, int, const Tensor& t) { return t * cos(p.in(0)); }
Tensor Cos::chain(const Point& p, int, const Tensor& t) { return t * -sin(p.in(0)); }
Tensor Sinh::chain(const Point& p, int, const Tensor& t) { return t * cosh(p.in(0)); }
Tensor Cosh::chain(const Point& p, int, const Tensor& t) { return t * sinh(p.in(0)); }

// The derivative is that of a function that differs by a sign and a constant.
Tensor Acos::chain(const Point& p, int, const Tensor& t) {
  return -emit<Backward<Asin>>({t.get(), p.in(0).tensor().get()}, {}, p.where());
}
Tensor Erfc::chain(const Point& p, int, const Tensor& t) {
  return -emit<Backward<Erf>>({t.get(), p.in(0).tensor().get()}, {}, p.where());
}

Tensor Rsqrt::curvature(const Tensor& y, const Attrs&) { return square(y) * -1.5; }
Tensor Reciprocal::curvature(const Tensor& y, const Attrs&) { return y * -2; }
Tensor Tan::curvature(const Tensor& y, const Attrs&) { return y * 2; }
Tensor Asin::curvature(const Tensor& x, const Attrs&) {
  const Tensor w = (1 - x) * (x + 1);
  return x * rsqrt(w) / w;
}
Tensor Atan::curvature(const Tensor& x, const Attrs&) {
  const Tensor h = hypot(x, 1.0);
  return x / h / h / h / h * -2;
}
Tensor Asinh::curvature(const Tensor& x, const Attrs&) {
  const Tensor h = hypot(x, 1.0);
  return -(x / h / h / h);
}
Tensor Acosh::curvature(const Tensor& x, const Attrs&) {
  const Tensor h = sqrt(x - 1) * sqrt(x + 1);
  return -(x / h / h / h);
}
Tensor Atanh::curvature(const Tensor& x, const Attrs&) {
  const Tensor w = (1 - x) * (x + 1);
  return x * 2 / w / w;
}
Tensor Erf::curvature(const Tensor& x, const Attrs&) {
  return emit<Backward<Erf>>({(x * -2).get(), x.get()}, {}, {});
}

// Functions whose derivatives take several ops, computed in float32 for 16-bit operands.
template <class F>
Tensor in_wider_dtype(const Point& p, const Tensor& t, const F& derivative) {
  const Widened wide(t);
  return wide.back(wide(t) * derivative(wide(p.in(0).tensor())));
}

Tensor Erfinv::chain(const Point& p, int, const Tensor& t) {
  return in_wider_dtype(p, t,
                        [](const Tensor& x) { return exp(square(erfinv(x))) * (1 / Erf::kTwoOverRootPi); });
}
Tensor Lgamma::chain(const Point& p, int, const Tensor& t) {
  return in_wider_dtype(p, t, [](const Tensor& x) { return digamma(x); });
}
Tensor Digamma::chain(const Point& p, int, const Tensor& t) {
  return in_wider_dtype(p, t, [&](const Tensor& x) { return emit<Polygamma>({x.get()}, {1}, p.where()); });
}
Tensor Polygamma::chain(const Point& p, int, const Tensor& t) {
  const int64_t n = p.attrs<Attrs>().n;
  return in_wider_dtype(p, t,
                        [&](const Tensor& x) { return emit<Polygamma>({x.get()}, {n + 1}, p.where()); });
}

// The derivative of a power is another power.
PowScalar::Attrs derived(const PowScalar::Attrs& a) { return {a.exponent - 1, a.coefficient * a.exponent}; }

Tensor PowScalar::chain(const Point& p, int, const Tensor& t) {
  return emit<PowScalarBackward>({t.get(), p.in(0).tensor().get()}, derived(p.attrs<Attrs>()), p.where());
}

Tensor PowScalarBackward::chain(const Point& p, int i, const Tensor& t) {
  const Attrs& a = p.attrs<Attrs>();
  if (i == 0) return emit<PowScalarBackward>({t.get(), p.in(1).tensor().get()}, a, p.where());
  const Widened wide(t);
  const Tensor g = wide(p.in(0).tensor()), x = wide(p.in(1).tensor());
  return wide.back(emit<PowScalarBackward>({g.get(), x.get()}, derived(a), p.where()) * wide(t));
}

Tensor NanToNum::chain(const Point& p, int, const Tensor& t) { return where(isfinite(p.in(0)), t, 0); }

}  // namespace retrograd::ops

#endif  // RG_DERIVATIVES
