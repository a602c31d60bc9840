// Normalisations.
#include "ops/norms.h"

#include "tests/conformance/bindings/families.h"

namespace retrograd::conformance {
namespace {

// The format has the order of torch.nn.functional, the library that of ATen.
template <auto F>
Tensor running_first(Operand input, const Tensor& running_mean, const Tensor& running_var,
                     const Tensor& weight, const Tensor& bias, bool training, Scalar momentum, Scalar eps) {
  return F(input, weight, bias, running_mean, running_var, training, momentum, eps);
}

constexpr Binding kBindings[] = {
    {"layer_norm", call<layer_norm>},
    {"rms_norm", call<rms_norm>},
    {"group_norm", call<group_norm>},
    {"batch_norm", call<running_first<batch_norm>>},
    {"instance_norm", call<running_first<instance_norm>>},
};

}  // namespace

BindingList norm_bindings() { return kBindings; }

}  // namespace retrograd::conformance
