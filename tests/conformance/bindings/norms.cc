// Normalisations.
#include "ops/norms.h"

#include "tests/conformance/bindings/families.h"

namespace retrograd::conformance {
namespace {

constexpr Binding kBindings[] = {
    {"layer_norm", call<layer_norm>},       {"rms_norm", call<rms_norm>},
    {"group_norm", call<group_norm>},       {"batch_norm", call<batch_norm>},
    {"instance_norm", call<instance_norm>},
};

}  // namespace

BindingList norm_bindings() { return kBindings; }

}  // namespace retrograd::conformance
