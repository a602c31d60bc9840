// Losses.
#include "ops/losses.h"

#include "tests/conformance/bindings/families.h"

namespace retrograd::conformance {
namespace {

// The format has the order of torch.nn.functional, the library that of ATen.
Tensor cross_entropy_of(Operand input, const Tensor& target, const Tensor& weight, int64_t ignore_index,
                        LossReduction reduction, Scalar label_smoothing) {
  return cross_entropy(input, target, weight, reduction, ignore_index, label_smoothing);
}
Tensor nll_loss_of(Operand input, const Tensor& target, const Tensor& weight, int64_t ignore_index,
                   LossReduction reduction) {
  return nll_loss(input, target, weight, reduction, ignore_index);
}

constexpr Binding kBindings[] = {
    {"cross_entropy", call<cross_entropy_of>},
    {"nll_loss", call<nll_loss_of>},
    {"mse_loss", call<mse_loss>},
    {"l1_loss", call<l1_loss>},
    {"smooth_l1_loss", call<smooth_l1_loss>},
    {"huber_loss", call<huber_loss>},
    {"binary_cross_entropy", call<binary_cross_entropy>},
    {"binary_cross_entropy_with_logits", call<binary_cross_entropy_with_logits>},
    {"kl_div", call<kl_div>},
    {"cosine_similarity", call<cosine_similarity>},
};

}  // namespace

BindingList loss_bindings() { return kBindings; }

}  // namespace retrograd::conformance
