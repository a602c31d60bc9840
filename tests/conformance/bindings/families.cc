// Finds the binding of an op: searches each family's table.
#include <algorithm>

#include "tests/conformance/bindings/families.h"

namespace retrograd::conformance {
namespace {

const Binding* find_exactly(std::string_view op) {
  for (const BindingList& family :
       {unary_bindings(),  binary_bindings(),      activation_bindings(),       reduce_bindings(),
        scan_bindings(),   shape_bindings(),       rearrange_bindings(),        index_bindings(),
        matmul_bindings(), convolution_bindings(), linalg_bindings(),           norm_bindings(),
        loss_bindings(),   pooling_bindings(),     elementwise_more_bindings(), decomposition_bindings(),
        layout_bindings(), statistics_bindings(),  window_bindings(),           margin_loss_bindings()})
    for (const Binding& binding : family)
      if (binding.op == op) return &binding;
  return nullptr;
}

}  // namespace

bool changes_geometry(std::string_view op) {
  constexpr std::string_view kOps[] = {"t_",       "transpose_", "swapaxes_",
                                       "squeeze_", "unsqueeze_", "as_strided_"};
  return std::ranges::count(kOps, op) > 0;
}

const Binding* find_binding(std::string_view op) {
  const Binding* binding = find_exactly(op);
  const std::string_view base = in_place_base(op);
  return binding || base.empty() ? binding : find_exactly(base);
}

}  // namespace retrograd::conformance
