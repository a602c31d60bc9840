// Linear algebra.
#include "ops/linalg.h"

#include "tests/conformance/bindings/families.h"

namespace retrograd::conformance {
namespace {

std::pair<Tensor, Tensor> slogdet_pair(Operand input) {
  const SlogdetResult r = slogdet(input);
  return {r.sign, r.logabsdet};
}

constexpr Binding kBindings[] = {
    {"inverse", call<inverse>},      {"det", call<det>},
    {"slogdet", call<slogdet_pair>}, {"cholesky", call<cholesky>},
    {"solve", call<solve>},          {"solve_triangular", call<solve_triangular>},
    {"trace", call<trace>},          {"matrix_power", call<matrix_power>},
};

}  // namespace

BindingList linalg_bindings() { return kBindings; }

}  // namespace retrograd::conformance
