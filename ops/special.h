// Special functions: those of libtorch's torch::special that ops/unary.h lacks, and sinc, logit, xlogy, logaddexp2.
// Their formulas are in ops/special_formulas.h and ops/bessel_formulas.h.
//
// Integers become float32. Floats are mostly computed in double and rounded once, as are gradients. erfcx, i0, i1, i0e
// and i1e have the order of the derivative as an attribute (I_n the order of the function), so that they are closed
// under differentiation: no derivative is a difference of nearly equal terms. Derivatives go up to kMostDerivatives,
// orders up to kMostOrder.
#pragma once

#include <optional>

#include "ops/backward.h"
#include "ops/bessel_formulas.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {
namespace ops {

struct Entr : FusedGradient<Entr> {
  static constexpr std::string_view name = "special_entr", doc = "-x log(x); 0 at 0 and -inf below";
  template <class V>
  RG_HD static V fwd(V x, const Attrs&) {
    return math::entr(x);
  }
  template <class V>
  RG_HD static V backward(V g, V x, const Attrs&) {
    return math::in_double([](auto t, auto w) { return -t * (1 + math::log(w)); }, g, x);
  }
  static Tensor curvature(const Tensor& x, const Attrs&);
};

struct Ndtr : FusedGradient<Ndtr> {
  static constexpr std::string_view name = "special_ndtr", doc = "the normal distribution function";
  template <class V>
  RG_HD static V fwd(V x, const Attrs&) {
    return math::ndtr(x);
  }
  template <class V>
  RG_HD static V backward(V g, V x, const Attrs&) {
    return math::in_double([](auto t, auto w) { return t * math::normal_density(w); }, g, x);
  }
  static Tensor curvature(const Tensor& x, const Attrs&);
};

struct LogNdtr : FusedGradient<LogNdtr> {
  static constexpr std::string_view name = "special_log_ndtr",
                                    doc = "log of the normal distribution function";
  template <class V>
  RG_HD static V fwd(V x, const Attrs&) {
    return math::in_double([](auto w) { return math::log_ndtr(w); }, x);
  }
  template <class V>
  RG_HD static V backward(V g, V x, const Attrs&) {
    return math::in_double([](auto t, auto w) { return t * math::log_ndtr_slope(w); }, g, x);
  }
  static Tensor curvature(const Tensor& x, const Attrs&);
};

struct Ndtri : FusedGradient<Ndtri> {
  static constexpr std::string_view name = "special_ndtri",
                                    doc = "inverse of the normal distribution function";
  template <class V>
  RG_HD static V fwd(V x, const Attrs&) {
    return math::in_double([](auto p) { return math::ndtri(p); }, x);
  }
  template <class V>
  RG_HD static V backward(V g, V x, const Attrs&) {
    return math::in_double([](auto t, auto p) { return t / math::normal_density(math::ndtri(p)); }, g, x);
  }
  static Tensor curvature(const Tensor& x, const Attrs&);
};

struct Sinc : FusedGradient<Sinc> {
  static constexpr std::string_view name = "sinc", doc = "sin(pi x) / (pi x), and 1 at 0";
  template <class V>
  RG_HD static V fwd(V x, const Attrs&) {
    return math::in_double([](auto w) { return math::sinc(w); }, x);
  }
  template <class V>
  RG_HD static V backward(V g, V x, const Attrs&) {
    return math::in_double([](auto t, auto w) { return t * math::sinc_slope(w); }, g, x);
  }
  static Tensor curvature(const Tensor& x, const Attrs&);
};

/// With x kept within [eps, 1 - eps]; eps below 0 means that it is not.
struct Logit : FusedGradient<Logit> {
  struct Attrs {
    Scalar eps = -1.0;
    void visit(AttrVisitor& v) { v.field("eps", eps); }
  };
  static constexpr std::string_view name = "logit",
                                    doc = "log(x / (1 - x)), x within [eps, 1 - eps] unless eps < 0";
  template <class V>
  RG_HD static V fwd(V x, const Attrs& a) {
    const V eps = math::number<V>(a.eps);
    return math::logit(a.eps.to_double() < 0 ? x : math::clamp(x, eps, 1 - eps));
  }
  template <class V>
  RG_HD static V backward(V g, V x, const Attrs& a) {
    const bool is_bounded = !(a.eps.to_double() < 0);
    const V end = is_bounded ? math::number<V>(a.eps) : V(0);
    const V slope = math::in_double([](auto t, auto w) { return t / (w * (1 - w)); }, g, x);
    const double inf = __builtin_huge_val();
    return math::select((x < end) | (x > 1 - end),
                        is_bounded ? V(0) : V(static_cast<typename V::Scalar>(inf - inf)), slope);
  }
  static Tensor curvature(const Tensor& x, const Attrs& a);
};

inline constexpr int64_t kMostDerivatives = 5, kMostOrder = 16;

struct DerivativeAttr {
  int64_t derivative = 0;
  void visit(AttrVisitor& v) { v.field("derivative", derivative); }
};
/// Error(bad_argument) unless the derivative is within [0, kMostDerivatives].
void infer_derivative(const Call& call, TensorImpl* const* outputs);

/// An op whose derivatives are the same op of a higher order.
template <class F>
struct WithDerivatives : Smooth<F> {
  using Attrs = DerivativeAttr;
  static void infer(const Call& call, TensorImpl* const* outputs) { infer_derivative(call, outputs); }
};

struct Erfcx : WithDerivatives<Erfcx> {
  static constexpr std::string_view name = "special_erfcx", doc = "e^(x^2) erfc(x), or a derivative of it";
  template <class V>
  RG_HD static V fwd(V x, const Attrs& a) {
    const int m = static_cast<int>(a.derivative);
    return math::in_double([m](auto w) { return m == 0 ? math::erfcx(w) : math::erfcx_derivative(m, w); }, x);
  }
  static Tensor chain(const Point& p, int, const Tensor& t);
};

struct I0e : WithDerivatives<I0e> {
  static constexpr std::string_view name = "special_i0e", doc = "e^-|x| I_0(x), or a derivative of it";
  template <class V>
  RG_HD static V fwd(V x, const Attrs& a) {
    const int m = static_cast<int>(a.derivative);
    return math::in_double([m](auto w) { return math::bessel_i0e(m, w); }, x);
  }
  static Tensor chain(const Point& p, int, const Tensor& t);
};

struct I1e : WithDerivatives<I1e> {
  static constexpr std::string_view name = "special_i1e", doc = "e^-|x| I_1(x), or a derivative of it";
  template <class V>
  RG_HD static V fwd(V x, const Attrs& a) {
    const int m = static_cast<int>(a.derivative);
    return math::in_double([m](auto w) { return math::bessel_i1e(m, w); }, x);
  }
  static Tensor chain(const Point& p, int, const Tensor& t);
};

/// The derivative is the mean of the functions of the neighbouring orders.
struct BesselI : Smooth<BesselI> {
  struct Attrs {
    int64_t order = 0;
    void visit(AttrVisitor& v) { v.field("order", order); }
  };
  static constexpr std::string_view name = "special_bessel_i",
                                    doc = "modified Bessel function of the first kind, of that order";
  static void infer(const Call& call, TensorImpl* const* outputs);
  template <class V>
  RG_HD static V fwd(V x, const Attrs& a) {
    const int n = static_cast<int>(a.order);
    return math::in_double([n](auto w) { return math::bessel_i(n, w); }, x);
  }
  static Tensor chain(const Point& p, int, const Tensor& t);
};

/// Functions of two operands, at most one of which is a number.
struct Xlogy : Binary, ChainRule<Xlogy> {
  static constexpr std::string_view name = "xlogy", doc = "a log(b); 0 where a is 0 and b a number";
  static constexpr Promotion promotion = Promotion::floating;
  static constexpr Saves saves = Saves::operands;
  template <class V>
  RG_HD static V fwd(V a, V b, const Attrs&) {
    return math::xlogy(a, b);
  }
  static Tensor chain(const Point& p, int i, const Tensor& t);
};

struct Xlog1py : Binary, ChainRule<Xlog1py> {
  static constexpr std::string_view name = "special_xlog1py",
                                    doc = "a log(1 + b); 0 where a is 0 and b a number";
  static constexpr Promotion promotion = Promotion::floating;
  static constexpr Saves saves = Saves::operands;
  template <class V>
  RG_HD static V fwd(V a, V b, const Attrs&) {
    return math::xlog1py(a, b);
  }
  static Tensor chain(const Point& p, int i, const Tensor& t);
};

struct Logaddexp2 : Elementwise<2>, ChainRule<Logaddexp2> {
  static constexpr std::string_view name = "logaddexp2", doc = "log2(2^a + 2^b)";
  static constexpr Promotion promotion = Promotion::floating;
  static constexpr Saves saves = Saves::operands;
  template <class V>
  RG_HD static V fwd(V a, V b, const Attrs&) {
    return math::in_double([](auto x, auto y) { return math::logaddexp2(x, y); }, a, b);
  }
  static Tensor chain(const Point& p, int i, const Tensor& t);
};

using SpecialOps = OpList<Entr, Backward<Entr>, Ndtr, Backward<Ndtr>, LogNdtr, Backward<LogNdtr>, Ndtri,
                          Backward<Ndtri>, Sinc, Backward<Sinc>, Logit, Backward<Logit>, Erfcx, I0e, I1e,
                          BesselI, Xlogy, Xlog1py, Logaddexp2>;

}  // namespace ops

/// sin(pi x) / (pi x), 1 at 0. Any shape; integers and bool give float32. Error(dtype_mismatch) for float8.
inline constexpr ops::Function<ops::Sinc> sinc;
/// input * log(other), 0 where input is 0 and other not NaN. Operands broadcast; at most one is a number. Integers give
/// float32.
inline constexpr ops::Function<ops::Xlogy> xlogy;
/// log2(2^input + 2^other) of tensors that broadcast. Integers give float32.
inline constexpr ops::Function<ops::Logaddexp2> logaddexp2;
/// log(input / (1 - input)), input kept within [eps, 1 - eps] if eps is given, where the gradient outside is 0.
Tensor logit(Operand input, std::optional<double> eps = {});
/// The n-th derivative of digamma, n >= 0. Error(bad_argument) for n < 0 and n > 170, whose n! no double holds.
Tensor polygamma(int64_t n, Operand input);

/// Any shape; integers and bool give float32. Error(dtype_mismatch) for float8.
namespace special {

inline constexpr ops::Function<ops::Entr> entr;         // -x log(x)
inline constexpr ops::Function<ops::Ndtr> ndtr;         // the normal distribution function
inline constexpr ops::Function<ops::LogNdtr> log_ndtr;  // its logarithm
inline constexpr ops::Function<ops::Ndtri> ndtri;       // its inverse, from (0, 1)
inline constexpr ops::Function<ops::Xlog1py> xlog1py;   // input * log(1 + other); as xlogy
/// e^(x^2) erfc(x).
Tensor erfcx(Operand input);
/// Modified Bessel functions of the first kind, of order 0 and 1; with e, times e^-|x|.
Tensor i0(Operand input);
Tensor i0e(Operand input);
Tensor i1(Operand input);
Tensor i1e(Operand input);

}  // namespace special
}  // namespace retrograd
#pragma GCC visibility pop

// ---- derivatives: compiled in ops/derivatives.cc alone, as they use functions of other families ----
#ifdef RG_DERIVATIVES

#include <numbers>

#include "ops/activations.h"
#include "ops/arithmetic.h"
#include "ops/comparison.h"
#include "ops/creation.h"
#include "ops/ternary.h"
#include "ops/unary.h"

namespace retrograd::inline v0::ops {

/// The derivative of F at x, by its fused gradient.
template <class F>
Tensor slope_of(const Tensor& x) {
  const Tensor one = ones_of(x.impl().type(), {});
  return emit<Backward<F>>({one.get(), x.get()}, {}, {});
}

Tensor Entr::curvature(const Tensor& x, const Attrs&) { return -1 / x; }
Tensor Ndtr::curvature(const Tensor& x, const Attrs&) { return -(x * slope_of<Ndtr>(x)); }

// With r = p / P, density by distribution, r' = -r (x + r). Below 0 the sum cancels; there, with z = -x / sqrt(2) and
// E = erfcx, r = sqrt(2 / pi) / E(z) and r' = E'(z) / E(z)^2 / sqrt(pi).
Tensor LogNdtr::curvature(const Tensor& x, const Attrs&) {
  const Tensor r = slope_of<LogNdtr>(x), z = clamp(x * (-1 / std::numbers::sqrt2), 0.0);
  const Tensor scaled = special::erfcx(z), bent = emit<Erfcx>({z.get()}, {1}, {});
  const Tensor below = bent / scaled / scaled * std::numbers::inv_sqrtpi;
  return where(lt(x, 0), below, -(r * (x + r)));
}

Tensor Ndtri::curvature(const Tensor& p, const Attrs&) {
  return special::ndtri(p) * square(slope_of<Ndtri>(p));
}

// f'' = -pi^2 f - 2 f' / x
Tensor Sinc::curvature(const Tensor& x, const Attrs&) {
  constexpr double kSquare = std::numbers::pi * std::numbers::pi;
  return where(eq(x, 0), -kSquare / 3, -(sinc(x) * kSquare + slope_of<Sinc>(x) / x * 2));
}

Tensor Logit::curvature(const Tensor& x, const Attrs& a) {
  const Tensor w = x * (1 - x), bent = (x * 2 - 1) / w / w;
  if (a.eps < Scalar(0)) return bent;
  return where(logical_or(lt(x, a.eps), gt(x, Scalar(1) - a.eps)), 0, bent);
}

template <class F>
Tensor next_derivative(const Point& p, const Tensor& t) {
  const Widened wide(t);
  const Tensor x = wide(p.in(0).tensor());
  return wide.back(wide(t) * emit<F>({x.get()}, {p.attrs<DerivativeAttr>().derivative + 1}, p.where()));
}
Tensor Erfcx::chain(const Point& p, int, const Tensor& t) { return next_derivative<Erfcx>(p, t); }
Tensor I0e::chain(const Point& p, int, const Tensor& t) { return next_derivative<I0e>(p, t); }
Tensor I1e::chain(const Point& p, int, const Tensor& t) { return next_derivative<I1e>(p, t); }

Tensor BesselI::chain(const Point& p, int, const Tensor& t) {
  const Widened wide(t);
  const Tensor x = wide(p.in(0).tensor()), g = wide(t);
  const int64_t n = p.attrs<Attrs>().order;
  const Tensor above = emit<BesselI>({x.get()}, {n + 1}, p.where());
  if (n == 0) return wide.back(g * above);
  return wide.back(g * ((emit<BesselI>({x.get()}, {n - 1}, p.where()) + above) * 0.5));
}

/// An operand in the wider dtype, also if it is a number.
Tensor wide_tensor(const Widened& wide, Operand x, const Tensor& like, SourceLocation where) {
  return x.is_scalar() ? scalar_tensor(x.scalar(), {like.dtype(), like.device()}, where) : wide(x.tensor());
}

// Of a log(b + shift), by a: f(t, b), but 0 where a is 0 and the logarithm is no number. By b: t a / (b + shift).
template <class F>
Tensor logarithm_chain(const Point& p, int i, const Tensor& t, int shift) {
  const Widened wide(t);
  const Tensor g = wide(t), a = wide_tensor(wide, p.in(0), g, p.where()),
               b = wide_tensor(wide, p.in(1), g, p.where());
  if (i == 1) return wide.back(g * (a / (shift ? b + shift : b)));
  return wide.back(where(logical_and(eq(a, 0), le(b, -shift)), 0, Function<F>()(g, b)));
}
Tensor Xlogy::chain(const Point& p, int i, const Tensor& t) { return logarithm_chain<Xlogy>(p, i, t, 0); }
Tensor Xlog1py::chain(const Point& p, int i, const Tensor& t) { return logarithm_chain<Xlog1py>(p, i, t, 1); }

Tensor Logaddexp2::chain(const Point& p, int i, const Tensor& t) {
  const Widened wide(t);
  const Tensor a = wide(p.in(i).tensor()), b = wide(p.in(1 - i).tensor());
  return wide.back(wide(t) * sigmoid((a - b) * std::numbers::ln2));
}

}  // namespace retrograd::ops

#endif  // RG_DERIVATIVES
