// Activation functions.
#include "ops/activations.h"

#include "tests/conformance/bindings/families.h"

namespace retrograd::conformance {
namespace {

constexpr Binding kBindings[] = {
    {"sigmoid", call<sigmoid>},
    {"tanh", call<tanh>},
    {"relu", call<relu>},
    {"relu6", call<relu6>},
    {"leaky_relu", call<leaky_relu>},
    {"threshold", call<threshold>},
    {"hardtanh", call<hardtanh>},
    {"hardsigmoid", call<hardsigmoid>},
    {"hardswish", call<hardswish>},
    {"softsign", call<softsign>},
    {"logsigmoid", call<logsigmoid>},
    {"silu", call<silu>},
    {"mish", call<mish>},
    {"softplus", call<softplus>},
    {"gelu", call<gelu>},
    {"elu", call<elu>},
    {"celu", call<celu>},
    {"selu", call<selu>},
};

}  // namespace

BindingList activation_bindings() { return kBindings; }

}  // namespace retrograd::conformance
