// Normalisation: one op, of which layer_norm, rms_norm, group_norm, batch_norm and instance_norm are made.
//
//   normalize(x, weight, bias) -> (y, mean, rstd)
//   over dims `dim`:   xhat = (x - mean) * rstd,   y = xhat * weight + bias
// where weight and bias have the sizes of dims `affine_dim` of x and are the same along all others (layer_norm: `dim`,
// batch_norm: the channels), rstd = 1 / sqrt(variance + eps) and, with center = false (rms_norm), the mean counts as 0.
// mean and rstd are kept for the backward op and never handed out: y and dx are differentiated as functions of x alone,
// so no gradient flows through them. Backward, with h = g * weight and E the mean over the dims:
//   dx = rstd * (h - E[h] - xhat * E[h * xhat])       dweight = sum(g * xhat)       dbias = sum(g)
// Statistics are computed and kept in float32 for 16-bit inputs.
// Limit: third derivatives. PyTorch's formula for the second derivative of layer_norm, batch_norm and instance_norm
// treats mean and rstd as constants, so that its own derivative differs from the true one; `constant_stats` does the
// same, to give equal numbers. group_norm and rms_norm are exact to any order, in PyTorch as here.
#pragma once

#include <optional>

#include "ops/op.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {
namespace ops {

struct NormalizeAttrs {
  IntList dim;  // wrapped and sorted
  Scalar eps = 1e-5;
  bool center = true;
  bool constant_stats = true;  // for derivatives of the second derivative
  IntList affine_dim = {};     // sorted; of weight and bias, if given
  void visit(AttrVisitor& v) {
    v.field("dim", dim);
    v.field("eps", eps);
    v.field("center", center);
    v.field("constant_stats", constant_stats);
    v.field("affine_dim", affine_dim);
  }
};

/// Operands (x, weight or none, bias or none), results (y, mean, rstd).
struct Normalize {
  using Attrs = NormalizeAttrs;
  static constexpr std::string_view name = "normalize",
                                    doc = "(x - mean) / sqrt(variance + eps) * weight + bias over dims";
  static constexpr std::string_view operands = "x, weight, bias";
  static constexpr std::string_view example =
      "f32[2,3], f32[3], f32[3] {dim=[1], eps=1e-05, center=true, constant_stats=false, affine_dim=[1]} : "
      "f32[2,3], f32[2,1], f32[2,1]";
  static constexpr int8_t arity = 3, outputs = 3;
  static constexpr uint8_t optional = 6;
  static constexpr uint32_t traits = static_cast<uint32_t>(Trait::pure);
  static void infer(const Call& call, TensorImpl* const* outputs);
  static SaveSet saves_for(const Call& call, uint64_t wants);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
  static void batch(BatchContext& c);
};

/// Operands (g, x, mean, rstd, weight or none); result dx, or with `affine` (dx, dweight, dbias).
struct NormalizeBackward {
  struct Attrs : NormalizeAttrs {
    bool affine = false;
    void visit(AttrVisitor& v) {
      NormalizeAttrs::visit(v);
      v.field("affine", affine);
    }
  };
  static constexpr std::string_view name = "normalize_backward", doc = "gradients of normalize";
  static constexpr std::string_view operands = "g, x, mean, rstd, weight";
  static constexpr std::string_view example =
      "f32[2,3], f32[2,3], f32[2,1], f32[2,1], f32[3] {dim=[1], eps=1e-05, center=true, "
      "constant_stats=false, affine_dim=[1], affine=true} : f32[2,3], f32[3], f32[3]";
  static constexpr int8_t arity = 5, outputs = -1;
  static constexpr uint8_t optional = 16;
  static constexpr uint32_t traits = static_cast<uint32_t>(Trait::pure);
  static void infer(const Call& call, TensorImpl* const* outputs);
  static SaveSet saves_for(const Call& call, uint64_t wants);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
  static void batch(BatchContext& c);
};

using NormOps = OpList<Normalize, NormalizeBackward>;

}  // namespace ops

// Weights, biases and running statistics may be undefined; they have the input's dtype, or are all float32 for a 16-bit
// input: then the result is rounded once. Errors: dtype_mismatch for other dtypes; shape_mismatch for a weight, bias or
// running statistic of another shape; bad_argument if there is nothing to normalise.

/// Over the last dims, whose sizes are `normalized_shape`, which is also the shape of weight and bias.
/// Error(shape_mismatch) otherwise.
Tensor layer_norm(Operand input, const Shape& normalized_shape, const Tensor& weight = {},
                  const Tensor& bias = {}, Scalar eps = 1e-5);
/// x / sqrt(mean(x^2) + eps) * weight over the last dims. Default of eps: the machine epsilon of the dtype that is
/// computed in, float32 for 16 bits. The weight has any floating dtype; the result has the input's.
Tensor rms_norm(Operand input, const Shape& normalized_shape, const Tensor& weight = {},
                std::optional<Scalar> eps = {});
/// Input [N, C, ...]: over groups of C / num_groups channels and all further dims. weight, bias: [C].
Tensor group_norm(Operand input, int64_t num_groups, const Tensor& weight = {}, const Tensor& bias = {},
                  Scalar eps = 1e-5);
/// Input [N, C, ...]: by channel, over all other dims. Unless `training`, the running statistics ([C], required then)
/// are used. In training these, if given, move by `momentum` towards the batch's mean and unbiased variance. weight,
/// bias: [C].
Tensor batch_norm(Operand input, const Tensor& weight = {}, const Tensor& bias = {},
                  const Tensor& running_mean = {}, const Tensor& running_var = {}, bool training = false,
                  Scalar momentum = 0.1, Scalar eps = 1e-5);
/// Input [N, C, ...]: by sample and channel, or by the running statistics unless `use_input_stats`.
Tensor instance_norm(Operand input, const Tensor& weight = {}, const Tensor& bias = {},
                     const Tensor& running_mean = {}, const Tensor& running_var = {},
                     bool use_input_stats = true, Scalar momentum = 0.1, Scalar eps = 1e-5);

}  // namespace retrograd
#pragma GCC visibility pop
