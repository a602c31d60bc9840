// The operands of a loss that is made of several ops.
//
// They are computed with in one dtype: the common one, but float32 for 16 bits, so that a loss is rounded once, after
// its reduction. Under autocast 16-bit operands count as float32, as for an op of CastPolicy::float32, and autocast is
// off for the ops inside. Integers stay as they are.
#pragma once

#include "engine/autocast.h"
#include "ops/loss_reduction.h"
#include "ops/shape_ops.h"

namespace retrograd::inline v0::ops {

class LossOperands {
 public:
  /// `operands`: all of them; some may be undefined.
  explicit LossOperands(std::initializer_list<const Tensor*> operands)
      : common_(common_dtype(operands)), wide_(is_half(common_) ? kFloat32 : common_) {}

  /// The tensor to compute with.
  Tensor operator()(const Operand& x) const { return is_floating(wide_) ? to(x, wide_) : x.tensor(); }
  /// The loss reduced, and rounded to the common dtype.
  Tensor reduce(const Tensor& loss, Averaging averaging) const {
    const Tensor reduced = reduce_loss(loss, averaging);
    return is_half(common_) ? to(reduced, common_) : reduced;
  }

 private:
  static bool is_half(ScalarType dtype) { return dtype == kFloat16 || dtype == kBFloat16; }
  static ScalarType common_dtype(std::initializer_list<const Tensor*> operands) {
    ScalarType common = ScalarType::Undefined;
    for (const Tensor* x : operands) {
      if (!x->defined()) continue;
      const ScalarType dtype = is_autocast_enabled() && is_half(x->dtype()) ? kFloat32 : x->dtype();
      common = common == ScalarType::Undefined ? dtype : promote_types(common, dtype);
    }
    return common;
  }

  ScalarType common_, wide_;
  detail::AutocastOff inside_;
};

}  // namespace retrograd::ops
