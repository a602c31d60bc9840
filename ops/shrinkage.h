// Activation functions beyond those of ops/activations.h: shrinkage, prelu, glu. At kinks the derivatives are
// PyTorch's: those of shrinkage are 0 at |x| = lambd, that of prelu is the weight at 0.
#pragma once

#include "ops/backward.h"
#include "ops/special_formulas.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {
namespace ops {

struct Tanhshrink : FusedGradient<Tanhshrink> {
  static constexpr std::string_view name = "tanhshrink", doc = "x - tanh(x)";
  template <class V>
  RG_HD static V fwd(V x, const Attrs&) {
    return math::in_double([](auto w) { return math::tanhshrink(w); }, x);
  }
  template <class V>
  RG_HD static V backward(V g, V x, const Attrs&) {
    const V y = math::tanh(x);
    return g * y * y;
  }
  static Tensor curvature(const Tensor& x, const Attrs&);
};

/// Base of functions that are 0 for |x| <= lambd and beyond have derivative 1.
template <class F>
struct Shrinkage : FusedGradient<F> {
  struct Attrs {
    Scalar lambd = 0.5;
    void visit(AttrVisitor& v) { v.field("lambd", lambd); }
  };
  template <class V>
  RG_HD static auto is_inside(V x, const Attrs& a) {
    const V lambd = math::number<V>(a.lambd);
    return (x >= -lambd) & (x <= lambd);
  }
  template <class V>
  RG_HD static V backward(V g, V x, const Attrs& a) {
    return math::select(is_inside(x, a), 0, g);
  }
};

struct Softshrink : Shrinkage<Softshrink> {
  static constexpr std::string_view name = "softshrink",
                                    doc = "x reduced by lambd in magnitude, at most to 0";
  template <class V>
  RG_HD static V fwd(V x, const Attrs& a) {
    const V lambd = math::number<V>(a.lambd);
    return math::select(is_inside(x, a), 0, math::select(x > 0, x - lambd, x + lambd));
  }
};

struct Hardshrink : Shrinkage<Hardshrink> {
  static constexpr std::string_view name = "hardshrink", doc = "0 where |x| <= lambd, else x";
  template <class V>
  RG_HD static V fwd(V x, const Attrs& a) {
    return math::select(is_inside(x, a), 0, x);
  }
};

/// The weight broadcasts.
struct Prelu : Elementwise<2>, ChainRule<Prelu> {
  static constexpr std::string_view name = "prelu", doc = "x if x > 0, else weight * x",
                                    operands = "x, weight";
  static constexpr Saves saves = Saves::operands;
  template <class V>
  RG_HD static V fwd(V x, V weight, const Attrs&) {
    return math::select(x > 0, x, weight * x);
  }
  static Tensor chain(const Point& p, int i, const Tensor& t);
};

/// The gradient of Prelu by x.
struct PreluBackward : Elementwise<3>, ChainRule<PreluBackward> {
  static constexpr std::string_view name = "prelu_backward", doc = "g if x > 0, else weight * g";
  static constexpr std::string_view operands = "g, x, weight";
  static SaveSet saves_for(const Call&, uint64_t wants) {
    return {(wants >> 2 & 1) | (wants & 5 ? uint64_t{2} : 0) | (wants & 1) << 2, 0};
  }
  template <class V>
  RG_HD static V fwd(V g, V x, V weight, const Attrs&) {
    return math::select(x > 0, g, weight * g);
  }
  static Tensor chain(const Point& p, int i, const Tensor& t);
};

struct Glu : Elementwise<2>, ChainRule<Glu> {
  static constexpr std::string_view name = "glu", doc = "a / (1 + e^-b)";
  static constexpr Promotion promotion = Promotion::floating;
  static SaveSet saves_for(const Call&, uint64_t wants) { return {2 | (wants >> 1 & 1), 0}; }
  template <class V>
  RG_HD static V fwd(V a, V b, const Attrs&) {
    return a * math::sigmoid(b);
  }
  static Tensor chain(const Point& p, int i, const Tensor& t);
};

using ShrinkageOps = OpList<Tanhshrink, Backward<Tanhshrink>, Softshrink, Backward<Softshrink>, Hardshrink,
                            Backward<Hardshrink>, Prelu, PreluBackward, Glu>;

}  // namespace ops

/// Any shape; integers and bool give float32.
inline constexpr ops::Function<ops::Tanhshrink> tanhshrink;
inline constexpr ops::Function<ops::Hardshrink> hardshrink;  // hardshrink(x, lambd = 0.5)
/// Error(bad_argument) for a negative lambd.
Tensor softshrink(Operand input, Scalar lambd = 0.5);
/// x if x > 0, else weight * x. `weight` has one element, or one for each index of input's dim 1, and input's dtype.
/// Error(shape_mismatch), Error(dtype_mismatch), Error(bad_dim) for a weight of more than one dim.
Tensor prelu(Operand input, Operand weight);
/// The first half of `dim` times sigmoid of the second half. Error(shape_mismatch) for an odd size, Error(bad_dim).
Tensor glu(Operand input, int64_t dim = -1);

}  // namespace retrograd
#pragma GCC visibility pop

// ---- derivatives: compiled in ops/derivatives.cc alone, as they use functions of other families ----
#ifdef RG_DERIVATIVES

#include "ops/activations.h"
#include "ops/arithmetic.h"
#include "ops/comparison.h"
#include "ops/ternary.h"

namespace retrograd::inline v0::ops {

// 1 - tanh(x)^2 is 4 s(2x) s(-2x), s = sigmoid.
Tensor Tanhshrink::curvature(const Tensor& x, const Attrs&) {
  const Tensor twice = x * 2;
  return tanh(x) * sigmoid(twice) * sigmoid(-twice) * 8;
}

Tensor Prelu::chain(const Point& p, int i, const Tensor& t) {
  const Tensor x = p.in(0).tensor();
  if (i == 1) return where(gt(x, 0), 0, t * x);
  return emit<PreluBackward>({t.get(), x.get(), p.in(1).tensor().get()}, {}, p.where());
}

Tensor PreluBackward::chain(const Point& p, int i, const Tensor& t) {
  if (i == 1) return zero_chain(p, i);
  const Tensor x = p.in(1).tensor();
  if (i == 2) return where(gt(x, 0), 0, t * p.in(0));
  return emit<PreluBackward>({t.get(), x.get(), p.in(2).tensor().get()}, {}, p.where());
}

Tensor Glu::chain(const Point& p, int i, const Tensor& t) {
  if (i == 0) return emit<Glu>({t.get(), p.in(1).tensor().get()}, {}, p.where());
  const Widened wide(t);
  const Tensor a = wide(p.in(0).tensor()), b = wide(p.in(1).tensor());
  return wide.back(wide(t) * (a * sigmoid(b) * sigmoid(-b)));
}

}  // namespace retrograd::ops

#endif  // RG_DERIVATIVES
