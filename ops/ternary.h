// Functions of three operands: where, lerp, addcmul, addcdiv; and clamp, which is one op for numbers as
// bounds (ops::Clamp in ops/activations.h), maximum and minimum for tensors.
#pragma once

#include <optional>

#include "ops/elementwise.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {
namespace ops {

/// input where condition, else other. The condition is bool, the other operands have one dtype; one of them may be a
/// number.
struct Where : Elementwise<3>, ChainRule<Where> {
  using Attrs = ScalarOperand;
  static constexpr std::string_view name = "where", doc = "input where condition, else other";
  static constexpr std::string_view operands = "condition, input, other";
  static constexpr std::string_view example = "bool[2,3], f32[2,3], f32[2,3] : f32[2,3]";
  static constexpr bool integers = true;
  static constexpr uint8_t optional = 6;
  static void infer(const Call& call, TensorImpl* const* outputs);
  static SaveSet saves_for(const Call&, uint64_t) { return {1, 0}; }
  template <class V>
  RG_HD static V fwd(V condition, V a, V b, const Attrs&) {
    return math::select(condition != 0, a, b);
  }
  static Tensor chain(const Point& p, int i, const Tensor& t);
};

/// input + weight * (end - input), computed from the nearer end. A number as weight saves nothing; a tensor saves
/// itself, and the ends for its own gradient.
struct Lerp : Elementwise<3>, ChainRule<Lerp> {
  using Attrs = ScalarOperand;
  static constexpr std::string_view name = "lerp", doc = "input + weight * (end - input)";
  static constexpr std::string_view operands = "input, end, weight";
  static SaveSet saves_for(const Call& call, uint64_t wants) {
    if (!call.operands[2]) return {};
    return {wants & 4 ? uint64_t{7} : 4, 0};
  }
  template <class V>
  RG_HD static V fwd(V a, V b, V w, const Attrs&) {
    return math::select(math::abs(w) < 0.5, a + w * (b - a), b - (b - a) * (1 - w));
  }
  static Tensor chain(const Point& p, int i, const Tensor& t);
};

struct ValueAttr {
  Scalar value = 1;
  void visit(AttrVisitor& v) { v.field("value", value); }
};

struct Addcmul : Elementwise<3>, ChainRule<Addcmul> {
  using Attrs = ValueAttr;
  static constexpr std::string_view name = "addcmul", doc = "input + value * tensor1 * tensor2";
  static constexpr std::string_view operands = "input, tensor1, tensor2";
  static constexpr bool integers = true, booleans = false;
  static SaveSet saves_for(const Call&, uint64_t wants) {
    return {(wants >> 2 & 1) << 1 | (wants >> 1 & 1) << 2, 0};
  }
  template <class V>
  RG_HD static V fwd(V x, V a, V b, const Attrs& attrs) {
    return x + math::number<V>(attrs.value) * a * b;
  }
  static Tensor chain(const Point& p, int i, const Tensor& t);
};

struct Addcdiv : Elementwise<3>, ChainRule<Addcdiv> {
  using Attrs = ValueAttr;
  static constexpr std::string_view name = "addcdiv", doc = "input + value * tensor1 / tensor2";
  static constexpr std::string_view operands = "input, tensor1, tensor2";
  static SaveSet saves_for(const Call&, uint64_t wants) { return {(wants >> 2 & 1) << 1 | 4, 0}; }
  template <class V>
  RG_HD static V fwd(V x, V a, V b, const Attrs& attrs) {
    const V value = math::number<V>(attrs.value), product = value * a, size = math::abs(product);
    const auto leaves_range = ((size < math::least_normal<V>()) & (a != 0)) | !math::isfinite(size);
    V term = product / b;
    if (math::any(leaves_range)) term = math::select(leaves_range, value * (a / b), term);
    return x + term;
  }
  static Tensor chain(const Point& p, int i, const Tensor& t);
};

using TernaryOps = OpList<Where, Lerp, Addcmul, Addcdiv>;

}  // namespace ops

/// input where `condition` (bool or uint8), else other; all broadcast, input and other promote. Error(dtype_mismatch)
/// for another condition.
Tensor where(Operand condition, Operand input, Operand other);
/// input + weight * (end - input). All tensors have one floating dtype: Error(dtype_mismatch).
Tensor lerp(Operand input, Operand end, Operand weight);
/// input + value * tensor1 * tensor2, and input + value * tensor1 / tensor2 (floating only).
Tensor addcmul(Operand input, Operand tensor1, Operand tensor2, Scalar value = 1);
Tensor addcdiv(Operand input, Operand tensor1, Operand tensor2, Scalar value = 1);
/// min(max(x, min), max); a bound is a number, a tensor or absent. At a number the gradient is 0; a tensor bound shares
/// it with x. Error(bad_argument) without any bound.
Tensor clamp(Operand x, std::optional<Operand> min = {}, std::optional<Operand> max = {});

}  // namespace retrograd
#pragma GCC visibility pop

// ---- derivatives: compiled in ops/derivatives.cc alone, as they use functions of other families ----
#ifdef RG_DERIVATIVES

#include "ops/arithmetic.h"

namespace retrograd::inline v0::ops {

Tensor Where::chain(const Point& p, int i, const Tensor& t) {
  return i == 1 ? where(p.in(0), t, 0) : where(p.in(0), 0, t);
}

static Operand one_minus(Operand w, Tensor& keep) {
  if (w.is_scalar()) return Operand(Scalar(1) - w.scalar(), w.where());
  keep = 1 - w;
  return Operand(keep, w.where());
}

Tensor Lerp::chain(const Point& p, int i, const Tensor& t) {
  Tensor keep;
  if (i == 0) return t * one_minus(p.in(2), keep);
  return i == 1 ? t * p.in(2) : t * (p.in(1) - p.in(0));
}

namespace {

// A number of a graph may have another value in the next run.
bool is_one(Scalar x) { return !x.is_symbolic() && x == Scalar(1); }

}  // namespace

Tensor Addcmul::chain(const Point& p, int i, const Tensor& t) {
  if (i == 0) return t;
  const Scalar value = p.attrs<Attrs>().value;
  return is_one(value) ? t * p.in(3 - i) : t * (p.in(3 - i) * value);
}

Tensor Addcdiv::chain(const Point& p, int i, const Tensor& t) {
  if (i == 0) return t;
  const Tensor scaled = t * p.attrs<Attrs>().value;
  return i == 1 ? scaled / p.in(2) : -(scaled * (p.in(1) / p.in(2)) / p.in(2));
}

}  // namespace retrograd::ops

#endif  // RG_DERIVATIVES
