// See nn/losses.h.
#include "nn/losses.h"

#include "nn/functional.h"

namespace retrograd::inline v0::nn {

namespace F = functional;

Tensor L1Loss::forward(Operand input, const Tensor& target) const {
  return F::l1_loss(input, target, options.reduction);
}

Tensor MSELoss::forward(Operand input, const Tensor& target) const {
  return F::mse_loss(input, target, options.reduction);
}

Tensor SmoothL1Loss::forward(Operand input, const Tensor& target) const {
  return F::smooth_l1_loss(input, target, options.reduction, options.beta);
}

Tensor HuberLoss::forward(Operand input, const Tensor& target) const {
  return F::huber_loss(input, target, options.reduction, options.delta);
}

Tensor CrossEntropyLoss::forward(Operand input, const Tensor& target) const {
  return F::cross_entropy(input, target, weight, options.reduction, options.ignore_index,
                          options.label_smoothing);
}

Tensor NLLLoss::forward(Operand input, const Tensor& target) const {
  return F::nll_loss(input, target, weight, options.reduction, options.ignore_index);
}

Tensor BCELoss::forward(Operand input, const Tensor& target) const {
  return F::binary_cross_entropy(input, target, weight, options.reduction);
}

BCEWithLogitsLoss::BCEWithLogitsLoss(Module* parent, std::string name, BCEWithLogitsLossOptions options)
    : WeightedLoss(parent, std::move(name), std::move(options)),
      pos_weight(this, "pos_weight", detail::sharing(this->options.pos_weight)) {}

Tensor BCEWithLogitsLoss::forward(Operand input, const Tensor& target) const {
  return F::binary_cross_entropy_with_logits(input, target, weight, pos_weight, options.reduction);
}

Tensor CTCLoss::forward(Operand log_probs, const Tensor& targets, const Tensor& input_lengths,
                        const Tensor& target_lengths) const {
  return F::ctc_loss(log_probs, targets, input_lengths, target_lengths, options.blank, options.reduction,
                     options.zero_infinity);
}

Tensor KLDivLoss::forward(Operand input, const Tensor& target) const {
  return F::kl_div(input, target, options.reduction, options.log_target);
}

Tensor PoissonNLLLoss::forward(Operand input, const Tensor& target) const {
  return F::poisson_nll_loss(input, target, options.log_input, options.full, options.eps, options.reduction);
}

Tensor GaussianNLLLoss::forward(Operand input, const Tensor& target, const Tensor& var) const {
  return F::gaussian_nll_loss(input, target, var, options.full, options.eps, options.reduction);
}

}  // namespace retrograd::nn
