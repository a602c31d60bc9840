// Functions of one operand whose gradient is one op, Backward<F>, named "gelu_backward" and so on: one pass over
// memory, one node of the graph, one rounding. F provides
//   fwd(x, attrs)           the function
//   backward(g, v, attrs)   g times its derivative, from v: the operand or the result, whichever is saved
//   curvature(v, attrs)     the derivative of the factor in backward, in tensors; absent where that factor
//                           is constant almost everywhere
// The gradient must be right wherever it can be represented. So a formula multiplies by g before it squares v, and
// subtracts where the operands are exact: (1 - x) (1 + x) and not 1 - x^2. Digits that a rounded result has lost cannot
// be recovered: the gradients of tanh, of sigmoid near 1 and of expm1 near -1 have the relative error of that rounding.
#pragma once

#include <array>

#include "ops/elementwise.h"
#ifndef RG_FORMULAS
#include "ops/widened.h"
#endif

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {
namespace ops {

template <class F>
struct Backward;

/// Base of a function F that saves its operand or its result.
template <class F, Saves S = Saves::operands>
struct FusedGradient : Smooth<F, S> {
  static Tensor chain(const Point& p, int, const Tensor& t) {
    const Tensor& v = S == Saves::result ? p.out() : p.in(0).tensor();
    if constexpr (std::is_same_v<typename F::Attrs, NoAttrs>)
      return emit<Backward<F>>({t.get(), v.get()}, {}, p.where());
    else
      return emit<Backward<F>>({t.get(), v.get()}, p.attrs<typename F::Attrs>(), p.where());
  }
};

/// NAME and a suffix, concatenated at compile time.
template <class F, size_t N>
constexpr auto name_with(const char (&suffix)[N]) {
  std::array<char, F::name.size() + N - 1> text{};
  for (size_t i = 0; i < text.size(); ++i)
    text[i] = i < F::name.size() ? F::name[i] : suffix[i - F::name.size()];
  return text;
}
template <class F>
inline constexpr auto backward_name = name_with<F>("_backward");

template <class F>
concept HasCurvature = requires {
  &F::curvature;
};

/// g * F'(v) for operands (g, v).
template <class F>
struct Backward : Elementwise<2>, ChainRule<Backward<F>> {
  using Attrs = typename F::Attrs;
  static constexpr std::string_view name{backward_name<F>.data(), backward_name<F>.size()};
  static constexpr std::string_view doc = "the gradient of the function", operands = "g, v";
  template <class V>
  RG_HD static V fwd(V g, V v, const Attrs& a) {
    return F::backward(g, v, a);
  }
  static SaveSet saves_for(const Call&, uint64_t wants) {
    return {2 | (HasCurvature<F> ? wants >> 1 & 1 : 0), 0};
  }
  static Tensor chain(const Point& p, int i, const Tensor& t) {
    if constexpr (!std::is_same_v<Attrs, NoAttrs>)
      return chain(p, i, t, p.attrs<Attrs>());
    else
      return chain(p, i, t, Attrs{});
  }

 private:
  static Tensor chain(const Point& p, int i, const Tensor& t, const Attrs& a) {
    if (i == 0) return emit<Backward>({t.get(), p.in(1).tensor().get()}, a, p.where());
    if constexpr (HasCurvature<F>) {
      const Widened wide(t);
      const Tensor bent = multiply(wide(p.in(0).tensor()), F::curvature(wide(p.in(1).tensor()), a));
      return wide.back(multiply(bent, wide(t)));
    } else {
      return zero_chain(p, i);
    }
  }
};

template <class... F>
using WithBackward = OpList<F..., Backward<F>...>;

}  // namespace ops
}  // namespace retrograd
#pragma GCC visibility pop
