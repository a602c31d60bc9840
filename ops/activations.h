// Activation functions. The gradient of each is one op: see ops/backward.h. At kinks the derivatives are PyTorch's
// (ATen/native/cpu/Activation.cpp), including the choice between < and <= in each formula. select() keeps the branch
// not taken from spreading inf and NaN.
#pragma once

#include "ops/backward.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {
namespace ops {

template <class F>
inline constexpr auto gate_name = name_with<F>("_gate");
template <class F>
inline constexpr auto slope_name = name_with<F>("_slope");

/// Base of an activation x * gate(x). F provides gate(x, attrs), and slope(x, s, attrs), its derivative, where s is
/// gate(x). Both ops give the same bits when they are computed with Gate and Slope, in float32 and float64: this is
/// done where a graph has both, so that the gate is computed once (ir/passes/gated_derivatives.h).
template <class F>
struct Gated : FusedGradient<F> {
  template <class V, class A>
  RG_HD static V fwd(V x, const A& a) {
    return x * F::gate(x, a);
  }
  template <class V, class A>
  RG_HD static V backward(V g, V x, const A& a) {
    return g * F::slope(x, F::gate(x, a), a);
  }
};

template <class F>
struct Gate : Elementwise<1> {
  using Attrs = typename F::Attrs;
  static constexpr std::string_view name{gate_name<F>.data(), gate_name<F>.size()};
  static constexpr std::string_view doc = "the factor by which the operand is multiplied", operands = "x";
  static constexpr std::string_view no_derivative =
      "only passes make it, and a graph is not differentiated after passes";
  template <class V>
  RG_HD static V fwd(V x, const Attrs& a) {
    return F::gate(x, a);
  }
};

/// For operands (x, gate of x).
template <class F>
struct Slope : Elementwise<2> {
  using Attrs = typename F::Attrs;
  static constexpr std::string_view name{slope_name<F>.data(), slope_name<F>.size()};
  static constexpr std::string_view doc = "the derivative of the activation", operands = "x, gate";
  static constexpr std::string_view no_derivative = Gate<F>::no_derivative;
  template <class V>
  RG_HD static V fwd(V x, V s, const Attrs& a) {
    return F::slope(x, s, a);
  }
};

struct Sigmoid : FusedGradient<Sigmoid, Saves::result> {
  static constexpr std::string_view name = "sigmoid", doc = "1 / (1 + e^-x)";
  template <class V>
  RG_HD static V fwd(V x, const Attrs&) {
    return math::sigmoid(x);
  }
  template <class V>
  RG_HD static V backward(V g, V y, const Attrs&) {
    return g * (1 - y) * y;
  }
  static Tensor curvature(const Tensor& y, const Attrs&);
};

struct Tanh : FusedGradient<Tanh, Saves::result> {
  static constexpr std::string_view name = "tanh", doc = "hyperbolic tangent";
  template <class V>
  RG_HD static V fwd(V x, const Attrs&) {
    return math::tanh(x);
  }
  template <class V>
  RG_HD static V backward(V g, V y, const Attrs&) {
    return g * (1 - y * y);
  }
  static Tensor curvature(const Tensor& y, const Attrs&);
};

struct Relu : FusedGradient<Relu, Saves::result> {
  static constexpr std::string_view name = "relu", doc = "max(x, 0); derivative 0 at 0";
  static constexpr Promotion promotion = Promotion::same;
  static constexpr bool integers = true, booleans = false;
  template <class V>
  RG_HD static V fwd(V x, const Attrs&) {
    return math::maximum(x, V(0));
  }
  template <class V>
  RG_HD static V backward(V g, V y, const Attrs&) {
    return math::select(y <= 0, 0, g);
  }
};

struct LeakyRelu : FusedGradient<LeakyRelu> {
  struct Attrs {
    Scalar negative_slope = 0.01;
    void visit(AttrVisitor& v) { v.field("negative_slope", negative_slope); }
  };
  static constexpr std::string_view name = "leaky_relu", doc = "x if x > 0, else negative_slope * x";
  template <class V>
  RG_HD static V fwd(V x, const Attrs& a) {
    return math::select(x > 0, x, x * math::number<V>(a.negative_slope));
  }
  template <class V>
  RG_HD static V backward(V g, V x, const Attrs& a) {
    return math::select(x > 0, g, g * math::number<V>(a.negative_slope));
  }
};

struct Threshold : FusedGradient<Threshold> {
  struct Attrs {
    Scalar threshold, value;
    void visit(AttrVisitor& v) {
      v.field("threshold", threshold);
      v.field("value", value);
    }
  };
  static constexpr std::string_view name = "threshold", doc = "x if x > threshold, else value";
  static constexpr Promotion promotion = Promotion::same;
  static constexpr bool integers = true, booleans = false;
  template <class V>
  RG_HD static V fwd(V x, const Attrs& a) {
    return math::select(x <= math::number<V>(a.threshold), math::number<V>(a.value), x);
  }
  template <class V>
  RG_HD static V backward(V g, V x, const Attrs& a) {
    return math::select(x <= math::number<V>(a.threshold), 0, g);
  }
};

struct Hardtanh : FusedGradient<Hardtanh> {
  struct Attrs {
    Scalar min_val = -1.0, max_val = 1.0;
    void visit(AttrVisitor& v) {
      v.field("min_val", min_val);
      v.field("max_val", max_val);
    }
  };
  static constexpr std::string_view name = "hardtanh",
                                    doc = "x within [min_val, max_val]; derivative 0 at both ends";
  static constexpr Promotion promotion = Promotion::same;
  static constexpr bool integers = true, booleans = false;
  template <class V>
  RG_HD static V fwd(V x, const Attrs& a) {
    return math::clamp(x, math::number<V>(a.min_val), math::number<V>(a.max_val));
  }
  template <class V>
  RG_HD static V backward(V g, V x, const Attrs& a) {
    return math::select((x <= math::number<V>(a.min_val)) | (x >= math::number<V>(a.max_val)), 0, g);
  }
};

/// clamp with two numbers; a bound that is not given is infinite.
struct Clamp : FusedGradient<Clamp> {
  struct Attrs {
    Scalar min, max;
    void visit(AttrVisitor& v) {
      v.field("min", min);
      v.field("max", max);
    }
  };
  static constexpr std::string_view name = "clamp", doc = "min(max(x, min), max); derivative 0 at both ends";
  static constexpr Promotion promotion = Promotion::same;
  static constexpr bool integers = true, booleans = false;
  template <class V>
  RG_HD static V fwd(V x, const Attrs& a) {
    return math::minimum(math::maximum(x, math::number<V>(a.min)), math::number<V>(a.max));
  }
  template <class V>
  RG_HD static V backward(V g, V x, const Attrs& a) {
    return math::select((x > math::number<V>(a.min)) & (x < math::number<V>(a.max)), g, 0);
  }
};

struct Hardsigmoid : FusedGradient<Hardsigmoid> {
  static constexpr std::string_view name = "hardsigmoid", doc = "(x + 3) / 6 within [0, 1]";
  template <class V>
  RG_HD static V fwd(V x, const Attrs&) {
    return math::clamp(x + 3, V(0), V(6)) / 6;
  }
  template <class V>
  RG_HD static V backward(V g, V x, const Attrs&) {
    // PyTorch's factor is 1/6 in float32, for float64 as well.
    return math::select((x > -3) & (x < 3), g * V(1.0f / 6.0f), 0);
  }
};

struct Hardswish : FusedGradient<Hardswish> {
  static constexpr std::string_view name = "hardswish", doc = "x * hardsigmoid(x)";
  template <class V>
  RG_HD static V fwd(V x, const Attrs&) {
    return x * (math::clamp(x + 3, V(0), V(6)) / 6);
  }
  template <class V>
  RG_HD static V backward(V g, V x, const Attrs&) {
    return math::select(x <= -3, 0, math::select(x < 3, g * (x / 3 + 0.5), g));
  }
  static Tensor curvature(const Tensor& x, const Attrs&);
};

struct Softsign : FusedGradient<Softsign> {
  static constexpr std::string_view name = "softsign", doc = "x / (1 + |x|)";
  template <class V>
  RG_HD static V fwd(V x, const Attrs&) {
    return x / (1 + math::abs(x));
  }
  template <class V>
  RG_HD static V backward(V g, V x, const Attrs&) {
    const V d = 1 + math::abs(x);
    return g / d / d;
  }
  static Tensor curvature(const Tensor& x, const Attrs&);
};

struct LogSigmoid : FusedGradient<LogSigmoid> {
  static constexpr std::string_view name = "logsigmoid", doc = "log(sigmoid(x))";
  template <class V>
  RG_HD static V fwd(V x, const Attrs&) {
    return math::minimum(x, V(0)) - math::log1p(math::exp(-math::abs(x)));
  }
  template <class V>
  RG_HD static V backward(V g, V x, const Attrs&) {
    return g * math::sigmoid(-x);
  }
  static Tensor curvature(const Tensor& x, const Attrs&);
};

struct Silu : Gated<Silu> {
  static constexpr std::string_view name = "silu", doc = "x * sigmoid(x)";
  template <class V>
  RG_HD static V gate(V x, const Attrs&) {
    return math::sigmoid(x);
  }
  template <class V>
  RG_HD static V slope(V x, V s, const Attrs&) {
    return s * (1 + x * (1 - s));
  }
  static Tensor curvature(const Tensor& x, const Attrs&);
};

struct Mish : FusedGradient<Mish> {
  static constexpr std::string_view name = "mish", doc = "x * tanh(log(1 + e^x))";
  // With e = e^x: tanh(log(1 + e)) = n / (n + 2) for n = e (e + 2). Beyond x = 20 it rounds to 1.
  template <class V>
  RG_HD static V fwd(V x, const Attrs&) {
    const V e = math::exp(math::minimum(x, V(20)));
    const V n = e * (e + 2);
    return x * (n / (n + 2));
  }
  template <class V>
  RG_HD static V backward(V g, V x, const Attrs&) {
    const V low = math::minimum(x, V(20)), e = math::exp(low);
    const V n = e * (e + 2), d = n + 2;
    return g * (n / d + low * (e / (1 + e)) * (4 * (n + 1) / (d * d)));
  }
  static Tensor curvature(const Tensor& x, const Attrs&);
};

struct Gelu : Gated<Gelu> {
  struct Attrs {
    bool tanh = false;
    void visit(AttrVisitor& v) { v.field("tanh", tanh); }
  };
  static constexpr std::string_view
      name = "gelu",
      doc = "x * Phi(x), Phi the normal distribution, or its approximation by tanh";
  static constexpr double kPdfFactor = 0.39894228040143267794;                     // 1/sqrt(2 pi)
  static constexpr double kTanhFactor = 0.79788456080286535588, kCube = 0.044715;  // sqrt(2/pi)
  // Beyond this the gate is 0 or 1 in float64, too, and the powers of x do not matter.
  static constexpr double kFlat = 100;
  template <class V>
  RG_HD static V gate(V x, const Attrs& a) {
    if (a.tanh) return 1 / (1 + math::exp(V(-2 * kTanhFactor) * (x + V(kCube) * x * x * x)));
    return math::normal_cdf(x);
  }
  template <class V>
  RG_HD static V slope(V x, V s, const Attrs& a) {
    if (a.tanh) {
      const V r = x * s * (1 - s);  // 0 where x^2 is infinite
      return s + (r * V(2 * kTanhFactor) + r * x * x * V(6 * kTanhFactor * kCube));
    }
    return s + x * math::exp(-0.5 * x * x) * V(kPdfFactor);
  }
  static Tensor curvature(const Tensor& x, const Attrs& a);
};

/// elu, celu and selu are one function with other numbers.
struct Elu : FusedGradient<Elu> {
  struct Attrs {
    Scalar alpha = 1.0, scale = 1.0, input_scale = 1.0;
    void visit(AttrVisitor& v) {
      v.field("alpha", alpha);
      v.field("scale", scale);
      v.field("input_scale", input_scale);
    }
  };
  static constexpr std::string_view name = "elu",
                                    doc =
                                        "scale * x if x > 0, else scale * alpha * (e^(input_scale * x) - 1)";
  template <class V>
  RG_HD static V fwd(V x, const Attrs& a) {
    const V scale = math::number<V>(a.scale), input_scale = math::number<V>(a.input_scale);
    return math::select(x <= 0, math::expm1(x * input_scale) * (math::number<V>(a.alpha) * scale), x * scale);
  }
  template <class V>
  RG_HD static V backward(V g, V x, const Attrs& a) {
    const V scale = math::number<V>(a.scale), input_scale = math::number<V>(a.input_scale);
    const V below = g * (input_scale * math::number<V>(a.alpha) * scale) * math::exp(x * input_scale);
    return math::select(x <= 0, below, g * scale);
  }
  static Tensor curvature(const Tensor& x, const Attrs& a);
};

struct Softplus : FusedGradient<Softplus> {
  struct Attrs {
    Scalar beta = 1.0, threshold = 20.0;
    void visit(AttrVisitor& v) {
      v.field("beta", beta);
      v.field("threshold", threshold);
    }
  };
  static constexpr std::string_view name = "softplus",
                                    doc = "log(1 + e^(beta x)) / beta, and x where beta x > threshold";
  static constexpr auto cast_policy = CastPolicy::float32;
  template <class V>
  RG_HD static V fwd(V x, const Attrs& a) {
    const V beta = math::number<V>(a.beta), z = x * beta;
    const V above = math::maximum(z, V(0)) + math::log1p(math::exp(-math::abs(z)));
    return math::select(z > math::number<V>(a.threshold), x, above / beta);
  }
  template <class V>
  RG_HD static V backward(V g, V x, const Attrs& a) {
    const V z = x * math::number<V>(a.beta);
    return math::select(z > math::number<V>(a.threshold), g, g * math::sigmoid(z));
  }
  static Tensor curvature(const Tensor& x, const Attrs& a);
};

using ActivationOps = WithBackward<Sigmoid, Tanh, Relu, LeakyRelu, Threshold, Hardtanh, Clamp, Hardsigmoid,
                                   Hardswish, Softsign, LogSigmoid, Silu, Mish, Gelu, Elu, Softplus>;
/// Only for the CPU, where the pass `gated_derivatives` makes them.
using ActivationPartOps = OpList<Gate<Silu>, Slope<Silu>, Gate<Gelu>, Slope<Gelu>>;

}  // namespace ops

/// Any shape; integers and bool give float32, except for relu, threshold and hardtanh, which keep integers.
inline constexpr ops::Function<ops::Sigmoid> sigmoid;
inline Tensor tanh(const Operand& x) { return ops::Function<ops::Tanh>()(x); }
inline constexpr ops::Function<ops::Relu> relu;
inline constexpr ops::Function<ops::LeakyRelu> leaky_relu;  // leaky_relu(x, negative_slope = 0.01)
inline constexpr ops::Function<ops::Threshold> threshold;   // threshold(x, threshold, value)
inline constexpr ops::Function<ops::Hardtanh> hardtanh;     // hardtanh(x, min_val = -1, max_val = 1)
inline constexpr ops::Function<ops::Hardsigmoid> hardsigmoid;
inline constexpr ops::Function<ops::Hardswish> hardswish;
inline constexpr ops::Function<ops::Softsign> softsign;
inline constexpr ops::Function<ops::LogSigmoid> logsigmoid;
inline constexpr ops::Function<ops::Silu> silu;
inline constexpr ops::Function<ops::Mish> mish;
inline constexpr ops::Function<ops::Softplus> softplus;  // softplus(x, beta = 1, threshold = 20)

/// hardtanh from 0 to 6.
Tensor relu6(Operand x);
/// approximate: "none" or "tanh"; Error(bad_argument) otherwise.
Tensor gelu(Operand x, std::string_view approximate = "none");
/// x where it is positive, else alpha * (e^x - 1).
Tensor elu(Operand x, Scalar alpha = 1.0);
/// x where it is positive, else alpha * (e^(x / alpha) - 1).
Tensor celu(Operand x, Scalar alpha = 1.0);
/// The self-normalising elu: Klambauer et al. 2017.
Tensor selu(Operand x);

}  // namespace retrograd
#pragma GCC visibility pop

// ---- derivatives: compiled in ops/derivatives.cc alone, as they use functions of other families ----
#ifdef RG_DERIVATIVES

#include "ops/arithmetic.h"
#include "ops/binary.h"
#include "ops/comparison.h"
#include "ops/creation.h"
#include "ops/ternary.h"
#include "ops/unary.h"

namespace retrograd::inline v0::ops {

// Each formula is the derivative of the factor in F::backward. In comments s is sigmoid(x), q = sigmoid(-x) = 1 - s, t
// tanh, p and P the normal density and distribution.

Tensor Sigmoid::curvature(const Tensor& y, const Attrs&) { return 1 - y * 2; }
Tensor Tanh::curvature(const Tensor& y, const Attrs&) { return y * -2; }

Tensor Hardswish::curvature(const Tensor& x, const Attrs&) {
  return where(logical_and(gt(x, -3), lt(x, 3)), ones_of(x.impl().type(), {}) / 3, 0);
}

Tensor Softsign::curvature(const Tensor& x, const Attrs&) { return sign(x) * pow(abs(x) + 1, -3) * -2; }

// (q)' = -s q
Tensor LogSigmoid::curvature(const Tensor& x, const Attrs&) { return -(sigmoid(x) * sigmoid(-x)); }

// (s (1 + x q))' = s q (2 + x (q - s))
Tensor Silu::curvature(const Tensor& x, const Attrs&) {
  const Tensor s = sigmoid(x), q = sigmoid(-x);
  return s * q * (x * (q - s) + 2);
}

// With t = tanh(log(1 + e^x)) = s (1 + q) / (1 + q^2), w = 1 - t^2 = 4 q^2 / (1 + q^2)^2 and t' = w s:
// (t + x s w)' = w s (2 + x q - 2 x t s)
Tensor Mish::curvature(const Tensor& x, const Attrs&) {
  const Tensor s = sigmoid(x), q = sigmoid(-x), d = square(q) + 1;
  const Tensor t = s * (q + 1) / d, w = square(q / d) * 4;
  return w * s * (x * (q - t * s * 2) + 2);
}

// Far from 0 it is 0, and x^2 may be infinite.
Tensor Gelu::curvature(const Tensor& given, const Attrs& a) {
  const Tensor x = clamp(given, -kFlat, kFlat), x2 = square(x);
  if (!a.tanh) return exp(x2 * -0.5) * (2 - x2) * kPdfFactor;  // (P + x p)' = p (2 - x^2)
  // With z = 2 k (x + c x^3), s and q of z: (s + x s q z')' = s q (2 z' + x (z'' + z'^2 (q - s)))
  const Tensor z = (x * x2 * kCube + x) * (2 * kTanhFactor), s = sigmoid(z), q = sigmoid(-z);
  const Tensor slope = (x2 * (3 * kCube) + 1) * (2 * kTanhFactor);
  return s * q * (slope * 2 + x * (x * (12 * kCube * kTanhFactor) + square(slope) * (q - s)));
}

Tensor Elu::curvature(const Tensor& x, const Attrs& a) {
  return where(lt(x, 0), exp(x * a.input_scale) * (a.alpha * a.scale * a.input_scale * a.input_scale), 0);
}

Tensor Softplus::curvature(const Tensor& x, const Attrs& a) {
  const Tensor z = x * a.beta;
  return where(ge(z, a.threshold), 0, sigmoid(z) * sigmoid(-z) * a.beta);
}

}  // namespace retrograd::ops

#endif  // RG_DERIVATIVES
