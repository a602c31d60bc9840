// Values that replace others: copy, fill, zero as functions of the old value and the new. Their in-place forms are
// Tensor's methods copy_, fill_ and zero_. The old value gets a gradient of zeros, as in PyTorch, so that a graph
// reaches the overwritten value.
#pragma once

#include "ops/op.h"

namespace retrograd::inline v0 {
namespace ops {

/// (old, source) of one type: source.
struct Copy {
  using Attrs = NoAttrs;
  static constexpr std::string_view name = "copy", doc = "a value in place of another";
  static constexpr std::string_view operands = "old, source";
  static constexpr std::string_view example = "f32[2,3], f32[2,3] : f32[2,3]";
  static constexpr int8_t arity = 2;
  static constexpr uint32_t traits = Trait::pure | Trait::elementwise;
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
  static constexpr auto batch = batch_leading;
};

using CopyOps = OpList<Copy>;

}  // namespace ops

/// `source`, broadcast to the shape, cast to the dtype and moved to the device of `self`. Error(shape_mismatch).
Tensor copy(Operand self, const Tensor& source);
/// A tensor like `self` filled with one value, a number or a 0-dim tensor.
Tensor fill(Operand self, Operand value);
Tensor zero(Operand self);

}  // namespace retrograd
