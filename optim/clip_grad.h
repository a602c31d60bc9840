// Clipping of gradients, in place. Sums are computed in double over chunks of fixed size, in a fixed order: the same
// bits with any number of threads. Parameters without a gradient are skipped; one whose gradient was used up in the
// backward (optim/in_backward.h) is an Error(bad_argument). All can be recorded (tracer/function/compile.h): then the
// norm is a node, and the rest is made of tensor functions.
#pragma once

#include "engine/tensor.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::optim {

/// A norm, available as a number and as a tensor. While a function is recorded there is no number yet: reading it is an
/// Error(bad_argument) that names the line of the call.
class GradNorm {
 public:
  explicit GradNorm(double value) : value_(value) {}
  GradNorm(Tensor recorded, SourceLocation where) : recorded_(std::move(recorded)), where_(where) {}

  operator double() const;
  /// A float64 tensor of no dims, without a gradient.
  Tensor tensor() const;

 private:
  double value_ = 0;
  Tensor recorded_;
  SourceLocation where_;
};

/// Scales all gradients together so that their norm is at most max_norm, as PyTorch does: by min(1, max_norm / (norm +
/// 1e-6)). Returns the norm before scaling: (sum |g|^norm_type)^(1/norm_type), or the largest |g| for an infinite
/// norm_type. Errors: bad_argument for max_norm < 0, norm_type <= 0, and, with error_if_nonfinite, for a norm that is
/// infinite or nan; dtype_mismatch for gradients that are not float32, float64, bfloat16 or float16.
GradNorm clip_grad_norm_(const Tensors& parameters, double max_norm, double norm_type = 2,
                         bool error_if_nonfinite = false, SourceLocation where = SourceLocation::current());

/// The norm of tensors: see total_norm(). Errors as of clip_grad_norm_.
GradNorm get_total_norm(const Tensors& tensors, double norm_type = 2, bool error_if_nonfinite = false,
                        SourceLocation where = SourceLocation::current());
/// Scales all gradients together as clip_grad_norm_ does, by a norm that was computed before.
void clip_grads_with_norm_(const Tensors& parameters, double max_norm, const GradNorm& total_norm,
                           SourceLocation where = SourceLocation::current());

/// Clamps every element of the gradients to [-clip_value, clip_value]. Error(bad_argument) for clip_value < 0.
void clip_grad_value_(const Tensors& parameters, double clip_value,
                      SourceLocation where = SourceLocation::current());

/// Error(bad_argument) for max_norm < 0 or norm_type <= 0.
void check_clipping(std::string_view op, double max_norm, double norm_type, SourceLocation where);

}  // namespace retrograd::optim

// Where PyTorch has them.
namespace retrograd::inline v0::nn::utils {
using optim::clip_grad_norm_;
using optim::clip_grad_value_;
using optim::clip_grads_with_norm_;
using optim::get_total_norm;
}  // namespace retrograd::nn::utils
#pragma GCC visibility pop
