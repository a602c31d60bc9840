// Softmax and log-softmax along one dim: one node each, forward and backward, with fused row kernels.
// Both save only their result. With y = softmax(x): dx = y * (g - sum(g * y)), which is symmetric, so it is the
// tangent's formula too. With y = log_softmax(x): dx = g - exp(y) * sum(g).
#pragma once

#include <optional>

#include "ops/op.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {
namespace ops {

struct SoftmaxAttrs {
  int64_t dim = 0;  // wrapped
  void visit(AttrVisitor& v) { v.field("dim", dim); }
};

struct SoftmaxLike {
  using Attrs = SoftmaxAttrs;
  static constexpr int8_t arity = 1;
  static constexpr uint32_t traits = static_cast<uint32_t>(Trait::pure);
  static constexpr Saves saves = Saves::result;
  static void infer(const Call& call, TensorImpl* const* outputs);
  static constexpr auto batch = batch_dims;
};

struct Softmax : SoftmaxLike {
  static constexpr std::string_view name = "softmax", doc = "exp(x) / sum(exp(x)) along a dim";
  static constexpr auto cast_policy = CastPolicy::float32;
  static constexpr std::string_view example = "f32[2,3] {dim=1} : f32[2,3]";
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
};

struct LogSoftmax : SoftmaxLike {
  static constexpr std::string_view name = "log_softmax", doc = "x - log(sum(exp(x))) along a dim";
  static constexpr auto cast_policy = CastPolicy::float32;
  static constexpr std::string_view example = "f32[2,3] {dim=1} : f32[2,3]";
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
};

/// Operands (g, y).
struct SoftmaxBackward : SoftmaxLike {
  static constexpr std::string_view name = "softmax_backward", doc = "y * (g - sum(g * y)) along a dim";
  static constexpr std::string_view operands = "g, y";
  static constexpr std::string_view example = "f32[2,3], f32[2,3] {dim=1} : f32[2,3]";
  static constexpr int8_t arity = 2;
  static constexpr Saves saves = Saves::operands;
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
};

struct LogSoftmaxBackward : SoftmaxBackward {
  static constexpr std::string_view name = "log_softmax_backward", doc = "g - exp(y) * sum(g) along a dim";
  static constexpr std::string_view operands = "g, y";
  static constexpr std::string_view example = "f32[2,3], f32[2,3] {dim=1} : f32[2,3]";
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
};

using SoftmaxOps = OpList<Softmax, LogSoftmax, SoftmaxBackward, LogSoftmaxBackward>;

Tensor softmax_backward(const Tensor& g, const Tensor& y, int64_t dim, SourceLocation where);

}  // namespace ops

/// Along `dim`, of the elements converted to `dtype` if that is given. Errors: bad_dim; dtype_mismatch for integers.
Tensor softmax(Operand input, int64_t dim, std::optional<ScalarType> dtype = {});
Tensor log_softmax(Operand input, int64_t dim, std::optional<ScalarType> dtype = {});

}  // namespace retrograd
#pragma GCC visibility pop
