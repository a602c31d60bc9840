// Scans and sorting.
#include "ops/scan.h"
#include "ops/sort.h"

#include "tests/conformance/bindings/families.h"

namespace retrograd::conformance {
namespace {

// Sorting is always stable, and topk always sorted.
ValuesAndIndices sort_of(Operand x, int64_t dim, bool descending, bool) { return sort(x, dim, descending); }
Tensor argsort_of(Operand x, int64_t dim, bool descending, bool) { return argsort(x, dim, descending); }
ValuesAndIndices topk_of(Operand x, int64_t k, int64_t dim, bool largest, bool) {
  return topk(x, k, dim, largest);
}

constexpr Binding kBindings[] = {
    {"cumsum", call<cumsum>},      {"cumprod", call<cumprod>}, {"sort", call<sort_of>},
    {"argsort", call<argsort_of>}, {"topk", call<topk_of>},
};

}  // namespace

BindingList scan_bindings() { return kBindings; }

}  // namespace retrograd::conformance
