// The tables of bindings, one per family of ops. A new family is a file next to this one, a line here and a line in
// families.cc.
#pragma once

#include "tests/conformance/binding.h"

namespace retrograd::conformance {

BindingList unary_bindings();
BindingList binary_bindings();
BindingList activation_bindings();
BindingList reduce_bindings();
BindingList scan_bindings();
BindingList shape_bindings();
BindingList rearrange_bindings();
BindingList layout_bindings();
BindingList index_bindings();
BindingList matmul_bindings();
BindingList convolution_bindings();
BindingList norm_bindings();
BindingList loss_bindings();
BindingList linalg_bindings();
BindingList pooling_bindings();
BindingList elementwise_more_bindings();
BindingList decomposition_bindings();
BindingList statistics_bindings();
BindingList window_bindings();
BindingList margin_loss_bindings();

}  // namespace retrograd::conformance
