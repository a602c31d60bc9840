// Rules of elementwise computations: arithmetic, conversions, selections.
//
// On floats the equations below hold for every bit pattern (IEEE 754, rounding to nearest): x * 1, x / 1
// and x - 0 are x; a sign that is flipped twice, or in both operands of a product, is not flipped; x /
// 2^k and x * 2^-k are roundings of one number; x * 2^i * 2^k is x * 2^(i+k) for i, k >= 0, as nothing is
// rounded before it overflows.
#include <algorithm>
#include <cmath>

#include "ops/activations.h"
#include "ops/arithmetic.h"
#include "ops/binary.h"
#include "ops/copy.h"
#include "ops/shape_ops.h"
#include "ops/ternary.h"
#include "ops/unary.h"
#include "rewrites/rules.h"

namespace retrograd::inline v0::rewrites {
namespace {

// The number in place of operand i of a binary op; NaN, which equals nothing, if it is a tensor or a
// symbol.
double number_at(const Match& m, size_t i) {
  const Scalar s = m.operand(i) == kNoValue ? m.attrs<ops::ScalarOperand>().scalar : Scalar(NAN);
  return s.is_symbolic() ? NAN : s.to_double();
}

// ---- x * 1, x / 1, x - 0; powers of two ------------------------------------------------------------------

constexpr int kMostExponent = 24;  // of numbers exact in all floating dtypes, and of their reciprocals

// k, if x is 2^k with 1 <= k <= kMostExponent; else 0.
int exponent_of(double x) {
  int exponent = 0;
  return std::frexp(x, &exponent) == 0.5 && exponent > 1 && exponent - 1 <= kMostExponent ? exponent - 1 : 0;
}

bool times_number(Match& m) {
  const size_t i = m.operand(0) == kNoValue ? 1 : 0;
  const double factor = number_at(m, 1 - i);
  if (factor == 1) return become_row_major(m, m.operand(i));
  const Node* inner = m.giver(m.operand(i), op<ops::Mul>);
  if (!inner || !is_floating(m.type().dtype) || exponent_of(factor) == 0) return false;
  const Scalar other = attrs_of<ops::Mul>(*inner).scalar;
  const size_t k = m.operand(*inner, 0) == kNoValue ? 1 : 0;
  if (m.operand(*inner, 1 - k) != kNoValue || other.is_symbolic()) return false;
  const int exponent = exponent_of(other.to_double()) + exponent_of(factor);
  if (exponent_of(other.to_double()) == 0 || exponent > kMostExponent) return false;
  const ops::Mul::Attrs attrs{Scalar(std::ldexp(1.0, exponent))};
  return m.become(op<ops::Mul>, {m.operand(*inner, k), kNoValue}, &attrs, inner);
}

bool by_number(Match& m) {
  const double divisor = number_at(m, 1);
  if (divisor == 1) return become_row_major(m, m.operand(0));
  const int exponent = exponent_of(divisor);
  const ops::Mul::Attrs attrs{Scalar(std::ldexp(1.0, -exponent))};
  return exponent > 0 && m.become(op<ops::Mul>, {m.operand(0), kNoValue}, &attrs);
}

bool minus_zero(Match& m) {
  const double number = number_at(m, 1);
  return number == 0 && !std::signbit(number) && become_row_major(m, m.operand(0));
}

// Only for integers: with floats -0 + 0 is 0.
bool plus_zero(Match& m) {
  if (is_floating(m.type().dtype)) return false;
  const size_t i = m.operand(0) == kNoValue ? 1 : 0;
  return number_at(m, 1 - i) == 0 && become_row_major(m, m.operand(i));
}

// ---- signs -----------------------------------------------------------------------------------------------

bool negated_twice(Match& m) {
  const Node* inner = m.giver(m.operand(0), op<ops::Neg>);
  return inner && become_row_major(m, m.operand(*inner, 0));
}

// a + -b is a - b, -a + b is b - a; a - -b is a + b.
bool plus_negated(Match& m) {
  if (m.operand(0) == kNoValue || m.operand(1) == kNoValue) return false;
  const ops::ScalarOperand none{};
  for (const size_t i : {1, 0})
    if (const Node* inner = m.giver(m.operand(i), op<ops::Neg>))
      return m.become(op<ops::Sub>, {m.operand(1 - i), m.operand(*inner, 0)}, &none, inner);
  return false;
}
bool minus_negated(Match& m) {
  const Node* inner = m.giver(m.operand(1), op<ops::Neg>);
  const ops::ScalarOperand none{};
  return inner && m.operand(0) != kNoValue &&
         m.become(op<ops::Add>, {m.operand(0), m.operand(*inner, 0)}, &none, inner);
}

template <class Op>
bool both_negated(Match& m) {
  const Node *a = m.giver(m.operand(0), op<ops::Neg>), *b = m.giver(m.operand(1), op<ops::Neg>);
  const ops::ScalarOperand none{};
  return a && b && m.become(op<Op>, {m.operand(*a, 0), m.operand(*b, 0)}, &none, std::min(a, b));
}

template <class Op>  // Op(-x) is Op(x)
bool of_negated(Match& m) {
  const Node* inner = m.giver(m.operand(0), op<ops::Neg>);
  return inner && m.become(op<Op>, {m.operand(*inner, 0)}, nullptr, inner);
}

template <class Op>  // Op(Op(x)) is Op(x)
bool applied_twice(Match& m) {
  return m.giver(m.operand(0), op<Op>) && m.become(m.operand(0));
}

// ---- conversions -----------------------------------------------------------------------------------------

// Whether every value of `from` is a value of `to`.
bool is_exact(ScalarType from, ScalarType to) {
  if (from == to || from == kBool) return !is_float8(to);
  switch (from) {
    case kFloat16:
    case kBFloat16: return to == kFloat32 || to == kFloat64;
    case kFloat32: return to == kFloat64;
    case kUInt8: return to == kInt32 || to == kInt64 || to == kFloat32 || to == kFloat64;
    case kInt32: return to == kInt64 || to == kFloat64;
    default: return false;
  }
}

// Conversions there and back, or there and on. Floats that are too large for an integer dtype give the processor's
// result, which depends on the width: a float in between is omitted only where the result is floating.
bool converted_twice(Match& m) {
  const ValueId x = m.operand(0);
  const ScalarType to = m.type().dtype, middle = m.type(x).dtype;
  if (middle == to) return become_row_major(m, x);
  const Node* inner = m.giver(x, op<ops::To>);
  if (!inner) return false;
  const ValueId from = m.operand(*inner, 0);
  if (!is_exact(m.type(from).dtype, middle)) return false;
  if (m.type(from).dtype == to) return become_row_major(m, from);
  if (is_float8(to) || (is_floating(middle) && !is_floating(to))) return false;
  const ops::To::Attrs attrs{to};
  return m.become(op<ops::To>, {from}, &attrs, inner);
}

// ---- selections -------------------------------------------------------------------------------------------

bool either_is_the_same(Match& m) {
  return m.operand(0) == m.operand(1) && become_row_major(m, m.operand(0));
}

bool choice(Match& m) {
  if (m.operand(1) != kNoValue && m.operand(1) == m.operand(2)) return become_row_major(m, m.operand(1));
  const Node* inner = m.giver(m.operand(0), op<ops::LogicalNot>);
  if (!inner || m.type(m.operand(*inner, 0)).dtype != kBool) return false;
  const ops::Where::Attrs attrs = attrs_of<ops::Where>(m);
  return m.become(op<ops::Where>, {m.operand(*inner, 0), m.operand(2), m.operand(1)}, &attrs, inner);
}

bool not_twice(Match& m) {
  const Node* inner = m.giver(m.operand(0), op<ops::LogicalNot>);
  return inner && become_row_major(m, m.operand(*inner, 0));  // refused where that is no bool
}

bool copied(Match& m) { return become_row_major(m, m.operand(1)); }
bool cloned(Match& m) { return become_row_major(m, m.operand(0)); }

constexpr Rewrite kNumberRules[] = {
    {&ops::info<ops::Mul>, times_number},
    {&ops::info<ops::Mul>, both_negated<ops::Mul>},
    {&ops::info<ops::Div>, by_number},
    {&ops::info<ops::Div>, both_negated<ops::Div>},
    {&ops::info<ops::Add>, plus_zero},
    {&ops::info<ops::Add>, plus_negated},
    {&ops::info<ops::Sub>, minus_zero},
    {&ops::info<ops::Sub>, minus_negated},
    {&ops::info<ops::Neg>, negated_twice},
    {&ops::info<ops::Abs>, of_negated<ops::Abs>},
    {&ops::info<ops::Square>, of_negated<ops::Square>},
    {&ops::info<ops::Abs>, applied_twice<ops::Abs>},
    {&ops::info<ops::Relu>, applied_twice<ops::Relu>},
    {&ops::info<ops::Sign>, applied_twice<ops::Sign>},
    {&ops::info<ops::Floor>, applied_twice<ops::Floor>},
    {&ops::info<ops::Ceil>, applied_twice<ops::Ceil>},
    {&ops::info<ops::Trunc>, applied_twice<ops::Trunc>},
    {&ops::info<ops::To>, converted_twice},
    {&ops::info<ops::Maximum>, either_is_the_same},
    {&ops::info<ops::Minimum>, either_is_the_same},
    {&ops::info<ops::Where>, choice},
    {&ops::info<ops::LogicalNot>, not_twice},
    {&ops::info<ops::Copy>, copied},
    {&ops::info<ops::Clone>, cloned},
};

}  // namespace

std::span<const Rewrite> number_rules() { return kNumberRules; }

}  // namespace retrograd::rewrites
