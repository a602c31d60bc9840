// See optim/clip_grad.h.
#include "optim/clip_grad.h"

#include <fmt/format.h>

#include "engine/emitter.h"
#include "ops/arithmetic.h"
#include "ops/creation.h"
#include "ops/optimizer_steps.h"
#include "ops/shape_ops.h"
#include "ops/ternary.h"
#include "ops/total_norm.h"

namespace retrograd::inline v0::optim {
namespace {

// A hook took the gradient: without the others, clipping would not notice.
void check_not_taken(const Tensor& param, std::string_view op, SourceLocation where) {
  if (!param.impl().meta) return;
  for (const RefPtr<Hook>& hook : param.impl().meta->post_accumulate_hooks.all())
    if (hook->is_live() && hook->takes_grad)
      fail(Category::bad_argument, op,
           fmt::format(
               "the gradient of {} is gone: it was used in the backward, by the optimizer there. Hint: "
               "max_norm of OptimizerInBackward",
               describe(param)),
           where);
}

// The existing gradients, contiguous; one that was not contiguous is replaced in its parameter.
Tensors gradients(const Tensors& parameters, std::string_view op, SourceLocation where) {
  NoGradGuard no_grad;
  Tensors all;
  for (const Tensor& p : parameters) {
    p.impl(op, where);
    Tensor g = p.grad();
    if (!g.defined()) {
      check_not_taken(p, op, where);
      continue;
    }
    if (!ops::may_be_updated(g.dtype()))
      fail(Category::dtype_mismatch, op,
           fmt::format("gradients are float32, float64, bfloat16 or float16, one is {}", describe(g)), where);
    if (!g.is_contiguous()) {
      g = contiguous(Operand(g, where));
      p.set_grad(g, where);
    }
    all.push_back(g);
  }
  return all;
}

// A number rounded to this dtype, as a recorded function uses it.
double rounded(double value, ScalarType dtype) {
  if (element_size(dtype) > 2) return value;  // kernels round it to the type that they compute in
  return to(scalar_tensor(value, {kFloat64}), dtype).item<double>();
}

bool is_recorded() { return Emitter::current().values() == Emitter::Values::of_function; }

void scale(const Tensors& grads, double max_norm, const GradNorm& norm) {
  const NoGradGuard no_grad;
  if (is_recorded()) {  // min(1, factor): the 1 changes nothing but a factor above 1
    const Tensor factor = clamp(max_norm / (norm.tensor() + 1e-6), {}, 1.0);
    for (const Tensor& g : grads) g.mul_(to(factor, g.dtype()));
    return;
  }
  const double factor = max_norm / (norm + 1e-6);
  if (factor >= 1) return;
  for (const Tensor& g : grads) g.mul_(rounded(factor, g.dtype()));
}

}  // namespace

GradNorm::operator double() const { return recorded_.defined() ? recorded_.item<double>(where_) : value_; }

Tensor GradNorm::tensor() const {
  return recorded_.defined() ? recorded_ : scalar_tensor(value_, {kFloat64});
}

void check_clipping(std::string_view op, double max_norm, double norm_type, SourceLocation where) {
  if (!(max_norm >= 0))
    fail(Category::bad_argument, op, fmt::format("max_norm must be at least 0, it is {}", max_norm), where);
  if (!(norm_type > 0))
    fail(Category::bad_argument, op, fmt::format("norm_type must be above 0, it is {}", norm_type), where);
}

GradNorm get_total_norm(const Tensors& tensors, double norm_type, bool error_if_nonfinite,
                        SourceLocation where) {
  check_clipping("get_total_norm", 0, norm_type, where);
  if (tensors.empty()) return GradNorm(0);
  const Tensor norm = total_norm(tensors, norm_type, error_if_nonfinite, where);
  return is_recorded() ? GradNorm(norm, where) : GradNorm(norm.item<double>());
}

void clip_grads_with_norm_(const Tensors& parameters, double max_norm, const GradNorm& total_norm,
                           SourceLocation where) {
  constexpr std::string_view op = "clip_grads_with_norm_";
  check_clipping(op, max_norm, 2, where);
  scale(gradients(parameters, op, where), max_norm, total_norm);
}

GradNorm clip_grad_norm_(const Tensors& parameters, double max_norm, double norm_type,
                         bool error_if_nonfinite, SourceLocation where) {
  constexpr std::string_view op = "clip_grad_norm_";
  check_clipping(op, max_norm, norm_type, where);
  const Tensors grads = gradients(parameters, op, where);
  if (grads.empty()) return GradNorm(0);
  const GradNorm norm = get_total_norm(grads, norm_type, error_if_nonfinite, where);
  scale(grads, max_norm, norm);
  return norm;
}

void clip_grad_value_(const Tensors& parameters, double clip_value, SourceLocation where) {
  constexpr std::string_view op = "clip_grad_value_";
  if (!(clip_value >= 0))
    fail(Category::bad_argument, op, fmt::format("clip_value must be at least 0, it is {}", clip_value),
         where);
  const Tensors grads = gradients(parameters, op, where);
  const NoGradGuard no_grad;
  for (const Tensor& g : grads) g.copy_(clamp(g, -clip_value, clip_value));
}

}  // namespace retrograd::optim
