// Patterns: several ops computed by one span kernel, as types made of the ops' structs.
//
//   Apply<Add, Apply<Mul, In<0>, In<1>>, In<2>>     a * b + c
//   Apply<Mul, In<0>, Num>                          an operand times the number in the other's place
//
// Their kernels are compiled from the ops' formulas (cpu/fused/levels/pattern_spans.h), so a pattern returns the same
// bits as its ops one by one; no pattern kernel is written by hand. A fused group uses the patterns that fit it
// (cpu/fused/fused_compose.cc): each saves a pass over a tile, which for a cheap op is its whole cost. The lists are
// for groups of training graphs: products and sums in pairs, numbers as operands, conditions, gradients of
// activations with what comes before them, functions of sums and products.
//
// To add one, add it to a list; a list to AllPatterns, and to a pattern_spans*.cc. Operands In<0>, In<1>, ... are
// numbered in order of appearance, each once, at most kMaxSpanInputs of them.
#pragma once

#include "ops/activations.h"
#include "ops/arithmetic.h"
#include "ops/comparison.h"
#include "ops/ternary.h"
#include "ops/unary.h"

namespace retrograd::inline v0::cpu::patterns {

/// Operand K of the kernel.
template <int K>
struct In {};
/// A number as operand: the attribute `scalar` of the enclosing op.
struct Num {};
template <class Op, class... Args>
struct Apply {};

/// The number of operands of an expression.
template <class E>
inline constexpr int inputs = 0;
template <int K>
inline constexpr int inputs<In<K>> = 1;
template <class Op, class... Args>
inline constexpr int inputs<Apply<Op, Args...>> = (inputs<Args> + ...);

using ops::Add, ops::Div, ops::Mul, ops::Neg, ops::OpList, ops::Sub, ops::Where;

// One op on operands and a number.
using TimesNumber = Apply<Mul, In<0>, Num>;
using PlusNumber = Apply<Add, In<0>, Num>;
using MinusNumber = Apply<Sub, In<0>, Num>;
using NumberMinus = Apply<Sub, Num, In<0>>;
using ByNumber = Apply<Div, In<0>, Num>;
using NumberBy = Apply<Div, Num, In<0>>;

// An op on an expression X, and on the operand after it.
template <class X>
using Next = In<inputs<X>>;
template <class X>
using AddTo = Apply<Add, X, Next<X>>;
template <class X>
using MulBy = Apply<Mul, X, Next<X>>;
template <class X>
using SubFrom = Apply<Sub, X, Next<X>>;
template <class X>
using NegOf = Apply<Neg, X>;
template <class X>
using TimesNumberOf = Apply<Mul, X, Num>;
template <class X>
using PlusNumberOf = Apply<Add, X, Num>;
template <class X>
using NumberMinusOf = Apply<Sub, Num, X>;
template <class X>
using SquareOf = Apply<ops::Square, X>;
// The other way round, the operand first: X must begin with operand 1.
template <class X>
using TakenFrom = Apply<Sub, In<0>, X>;

template <template <class> class... Outer>
struct Outers {
  template <class X>
  using of = OpList<Outer<X>...>;
};
using CheapOuters =
    Outers<AddTo, MulBy, SubFrom, NegOf, TimesNumberOf, PlusNumberOf, NumberMinusOf, SquareOf>;

using Product = Apply<Mul, In<0>, In<1>>;
using Sum = Apply<Add, In<0>, In<1>>;
using Difference = Apply<Sub, In<0>, In<1>>;
using Negative = Apply<Neg, In<0>>;

using Numbers = OpList<TimesNumber, PlusNumber, MinusNumber, NumberMinus, ByNumber, NumberBy>;
using OfProduct = CheapOuters::of<Product>;
using OfSum = CheapOuters::of<Sum>;
using OfDifference = CheapOuters::of<Difference>;
using OfNegative = Outers<AddTo, MulBy, TimesNumberOf, PlusNumberOf>::of<Negative>;
using OfTimesNumber = CheapOuters::of<TimesNumber>;
using OfPlusNumber = CheapOuters::of<PlusNumber>;
using OfNumberMinus = CheapOuters::of<NumberMinus>;
using TakenAway = OpList<TakenFrom<Apply<Mul, In<1>, In<2>>>, TakenFrom<Apply<Mul, In<1>, Num>>,
                         TakenFrom<Apply<Add, In<1>, In<2>>>>;

// Three ops.
using TwoProducts = Apply<Mul, In<2>, In<3>>;
using Triples =
    OpList<Apply<Add, Product, TwoProducts>, Apply<Sub, Product, TwoProducts>,
           Apply<Mul, Product, TwoProducts>, AddTo<TimesNumberOf<Product>>, MulBy<TimesNumberOf<Product>>,
           AddTo<AddTo<Product>>, MulBy<AddTo<Product>>, PlusNumberOf<TimesNumberOf<Product>>,
           MulBy<PlusNumberOf<Product>>, SubFrom<TimesNumberOf<Product>>,
           Apply<Sub, Product, Apply<Mul, In<2>, Num>>, Apply<Add, Product, Apply<Mul, In<2>, Num>>,
           Apply<Add, TimesNumber, Apply<Mul, In<1>, Num>>, AddTo<NegOf<Product>>, MulBy<NegOf<Product>>,
           MulBy<TimesNumberOf<Negative>>, AddTo<TimesNumberOf<Negative>>>;

// A gradient of an activation, the product before it or after it.
template <class F>
using GradientOf = Apply<ops::Backward<F>, In<0>, In<1>>;
template <class F>
using GradientOfProduct = Apply<ops::Backward<F>, Product, In<2>>;
template <class... F>
using Gradients = OpList<GradientOfProduct<F>..., MulBy<GradientOf<F>>..., AddTo<GradientOf<F>>...,
                         MulBy<GradientOfProduct<F>>..., AddTo<GradientOfProduct<F>>...>;
using CheapGradients = Gradients<ops::Tanh, ops::Sigmoid, ops::Relu>;

// An elementary function of the result of a cheap op.
template <class F>
using FunctionOf = OpList<Apply<F, Product>, Apply<F, Sum>, Apply<F, Difference>, Apply<F, Negative>,
                          Apply<F, TimesNumber>, Apply<F, PlusNumber>>;

// Conditions.
template <class Op>
using ChosenBy =
    OpList<Apply<Where, Apply<Op, In<0>, In<1>>, In<2>, In<3>>,
           Apply<Where, Apply<Op, In<0>, Num>, In<1>, In<2>>, Apply<Where, Apply<Op, In<0>, Num>, In<1>, Num>,
           Apply<Where, Apply<Op, In<0>, Num>, Num, In<1>>>;
using Choices = OpList<Apply<Where, In<0>, In<1>, Num>, Apply<Where, In<0>, Num, In<1>>>;

template <class... Lists>
struct ListOfLists {};
using AllPatterns =
    ListOfLists<Numbers, OfProduct, OfSum, OfDifference, OfNegative, OfTimesNumber, OfPlusNumber,
                OfNumberMinus, TakenAway, Triples, CheapGradients, FunctionOf<ops::Exp>,
                FunctionOf<ops::Tanh>, FunctionOf<ops::Sigmoid>, Choices, ChosenBy<ops::Gt>,
                ChosenBy<ops::Ge>, ChosenBy<ops::Lt>, ChosenBy<ops::Le>, ChosenBy<ops::Eq>>;

}  // namespace retrograd::cpu::patterns
