// Distances between vectors: dist, cdist, pdist.
//
// The p-distance of a and b is the p-norm of d = a - b: (sum |d|^p)^(1/p), the largest |d| for an infinite p, the
// number of differences for p = 0. With y the distance, its derivative by a is
//   u = sign(d) (|d| / y)^(p-1), 0 where y is 0,
// and the derivative of u is (p-1) / y * (w t - u (u . t)) with w = (|d| / y)^(p-2), 0 where d is 0, and t the tangent
// of d. For p = 0, 1 and infinity it is 0. Differences are taken before they are squared, so that near vectors do not
// lose digits. First derivatives are kernels, which need no memory for all d; further ones are composed.
#pragma once

#include "ops/op.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {
namespace ops {

struct DistanceAttrs {
  Scalar p;
  void visit(AttrVisitor& v) { v.field("p", p); }
};

/// (a [.., n, m], b [.., k, m]) to [.., n, k].
struct Cdist {
  using Attrs = DistanceAttrs;
  static constexpr std::string_view name = "cdist", doc = "distances between all rows of a and of b";
  static constexpr auto cast_policy = CastPolicy::float32;
  static constexpr std::string_view example = "f32[4,3], f32[2,3] {p=2} : f32[4,2]";
  static constexpr int8_t arity = 2;
  static constexpr uint32_t traits = static_cast<uint32_t>(Trait::pure);
  static constexpr Saves saves = Saves::operands;
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
  static constexpr auto batch = batch_leading;
};

/// (g [.., n, k], a, b): the gradient of a, [.., n, m]; that of b is the same with a and b exchanged and g transposed.
struct CdistBackward {
  using Attrs = DistanceAttrs;
  static constexpr std::string_view name = "cdist_backward", doc = "gradient of a";
  static constexpr std::string_view operands = "g, a, b";
  static constexpr std::string_view example = "f32[4,2], f32[4,3], f32[2,3] {p=2} : f32[4,3]";
  static constexpr int8_t arity = 3;
  static constexpr uint32_t traits = static_cast<uint32_t>(Trait::pure);
  static constexpr Saves saves = Saves::operands;
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
  static constexpr auto batch = batch_leading;
};

using DistanceOps = OpList<Cdist, CdistBackward>;

}  // namespace ops

// For p >= 0, else Error(bad_argument). Error(dtype_mismatch) unless floating, and of one dtype. Gradients are 0 where
// all differences are 0.

/// The p-distance of two tensors that broadcast: a number. For an infinite p the gradient is split evenly among ties.
Tensor dist(Operand input, const Tensor& other, Scalar p = 2);
/// [.., n, m] and [.., k, m] to the distances of all rows, [.., n, k]; the leading dims broadcast. Errors: bad_dim,
/// shape_mismatch.
Tensor cdist(Operand x1, const Tensor& x2, double p = 2);
/// [n, m] to the distances of each pair of rows i < j, [n (n-1) / 2], row by row. Error(bad_dim).
Tensor pdist(Operand input, double p = 2);

}  // namespace retrograd
#pragma GCC visibility pop
