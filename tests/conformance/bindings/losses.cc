// Losses.
#include "ops/losses.h"

#include "tests/conformance/bindings/families.h"

namespace retrograd::conformance {
namespace {

constexpr Binding kBindings[] = {
    {"cross_entropy", call<cross_entropy>},
    {"nll_loss", call<nll_loss>},
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
