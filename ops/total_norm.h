// The norm of many tensors together, as if their elements were one vector: used for gradient clipping
// (optim/clip_grad.h).
//
// Powers are summed in float64, in pieces whose sizes do not depend on the number of threads: the result is the same on
// any number. On the CPU it is the norm of the operands' norms, to the last bit.
#pragma once

#include "ops/op.h"

namespace retrograd::inline v0 {
namespace ops {

/// For float32, float64, bfloat16 and float16 operands of any shapes, row-major.
struct TotalNorm {
  struct Attrs {
    Scalar norm_type;
    bool error_if_nonfinite;
    void visit(AttrVisitor& v) {
      v.field("norm_type", norm_type);
      v.field("error_if_nonfinite", error_if_nonfinite);
    }
  };
  static constexpr std::string_view name = "total_norm", doc = "the norm of all operands together",
                                    no_derivative = "gradient clipping is not differentiated";
  static constexpr std::string_view example =
      "f32[3], f64[2,2] {norm_type=2, error_if_nonfinite=false} : f64[]";
  static constexpr int8_t arity = -1;
  static constexpr uint32_t traits = Trait::pure | Trait::checks;
  static void infer(const Call& call, TensorImpl* const* outputs);
  static void batch(BatchContext& c);
};

using TotalNormOps = OpList<TotalNorm>;

}  // namespace ops

/// (sum |x|^norm_type)^(1/norm_type) over the elements of all tensors; the largest |x| if norm_type is infinite.
/// float64, without dimensions and without a gradient. As torch.nn.utils.get_total_norm, except for the dtype. Errors:
/// bad_argument (no tensors; a norm that is nan or infinite, if that check is requested), dtype_mismatch.
Tensor total_norm(const Tensors& tensors, Scalar norm_type = 2.0, bool error_if_nonfinite = false,
                  SourceLocation where = SourceLocation::current());

}  // namespace retrograd
