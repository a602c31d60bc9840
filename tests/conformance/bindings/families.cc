// Finding the binding of an op: a look at each family's table.
#include "tests/conformance/bindings/families.h"

namespace retrograd::conformance {
namespace {

const Binding* find_exactly(std::string_view op) {
  for (const BindingList& family :
       {unary_bindings(), binary_bindings(), activation_bindings(), reduce_bindings(), scan_bindings(),
        shape_bindings(), rearrange_bindings(), index_bindings(), matmul_bindings(), convolution_bindings(),
        linalg_bindings(), norm_bindings(), loss_bindings(), pooling_bindings()})
    for (const Binding& binding : family)
      if (binding.op == op) return &binding;
  return nullptr;
}

}  // namespace

const Binding* find_binding(std::string_view op) {
  const Binding* binding = find_exactly(op);
  const std::string_view base = in_place_base(op);
  return binding || base.empty() ? binding : find_exactly(base);
}

}  // namespace retrograd::conformance
