// Dropout: elements, or whole channels, replaced at random while training.
//
// dropout is one op that saves no mask: its transpose is the same op with the same position in the random stream
// (ops/random_ops.h), applied to the gradient. The other functions multiply by a mask of such draws; a channel's mask
// has size 1 in the dims after it. The in-place forms write into x, whose gradient follows, under the rules of all
// in-place ops (engine/inplace.h). Without `training` all return x itself. Errors: bad_argument unless 0 <= p <= 1,
// dtype_mismatch unless x has a floating dtype, bad_dim if x has too few dims for channels.
#pragma once

#include "ops/random_ops.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {
namespace ops {

/// x / (1 - p) with probability 1 - p, else 0. Linear in x for a given draw.
struct Dropout : Random {
  struct Attrs {
    Scalar p;
    Draw draw;
    void visit(AttrVisitor& v) {
      v.field("p", p);
      draw.visit(v);
    }
  };
  static constexpr std::string_view name = "dropout",
                                    doc = "elements set to zero at random, the others scaled up";
  static constexpr std::string_view example = "f32[2,3] {p=0.5, seed=1, offset=0} : f32[2,3]";
  static constexpr int8_t arity = 1;
  static constexpr uint32_t traits = Trait::pure | Trait::random | Trait::elementwise;
  static void infer(const Call& call, TensorImpl* const* outputs);
  static Tensor transpose(RuleContext& c, int, const Tensor& g);
};

using DropoutOps = OpList<Dropout>;

}  // namespace ops

/// Each element zero with probability p, else scaled by 1 / (1 - p).
Tensor dropout(Operand x, double p = 0.5, bool training = true);
/// The same for whole channels: entries of the first two dims. Error(bad_dim) for fewer than two dims.
Tensor feature_dropout(Operand x, double p = 0.5, bool training = true);
/// feature_dropout() of (N, C, L), or of (C, L) without a batch.
Tensor dropout1d(Operand x, double p = 0.5, bool training = true);
/// feature_dropout() of (N, C, H, W). As in PyTorch, three dims count as (N, C, L) and two as (N, C).
Tensor dropout2d(Operand x, double p = 0.5, bool training = true);
/// feature_dropout() of (N, C, D, H, W), or of (C, D, H, W) without a batch.
Tensor dropout3d(Operand x, double p = 0.5, bool training = true);
/// Each element replaced with probability p by selu's limit at -inf, then scaled and moved so that mean 0 and
/// variance 1 stay so (Klambauer et al., Self-Normalizing Neural Networks, 2017).
Tensor alpha_dropout(Operand x, double p = 0.5, bool training = true);
Tensor feature_alpha_dropout(Operand x, double p = 0.5, bool training = true);

/// In place; returns x.
const Tensor& dropout_(const Tensor& x, double p = 0.5, bool training = true,
                       SourceLocation where = SourceLocation::current());
const Tensor& feature_dropout_(const Tensor& x, double p = 0.5, bool training = true,
                               SourceLocation where = SourceLocation::current());
const Tensor& alpha_dropout_(const Tensor& x, double p = 0.5, bool training = true,
                             SourceLocation where = SourceLocation::current());
const Tensor& feature_alpha_dropout_(const Tensor& x, double p = 0.5, bool training = true,
                                     SourceLocation where = SourceLocation::current());

}  // namespace retrograd
#pragma GCC visibility pop
