// Statistics, order statistics, cumulative extremes, distances, differences, counts and searches.
#include "ops/statistics.h"
#include "ops/counts.h"
#include "ops/cumulative.h"
#include "ops/differences.h"
#include "ops/distances.h"
#include "ops/order_statistics.h"
#include "ops/quantile.h"
#include "ops/search.h"
#include "ops/unique.h"

#include "tests/conformance/bindings/families.h"

namespace retrograd::conformance {
namespace {

using OptionalDim = std::optional<int64_t>;  // one dim or none

Tensors aminmax_of(Operand x, OptionalDim dim, bool keepdim) {
  const MinAndMax found = aminmax(x, dim, keepdim);
  return {found.min, found.max};
}

Tensors median_of(Operand x, OptionalDim dim, bool keepdim) {
  return dim ? detail::results(median(x, *dim, keepdim)) : Tensors{median(x)};
}
Tensors nanmedian_of(Operand x, OptionalDim dim, bool keepdim) {
  return dim ? detail::results(nanmedian(x, *dim, keepdim)) : Tensors{nanmedian(x)};
}

Tensor trapezoid_of(Operand y, const Tensor& x, std::optional<Scalar> dx, int64_t dim) {
  return x.defined() ? trapezoid(y, x, dim) : trapezoid(y, dx.value_or(1), dim);
}
Tensor cumulative_trapezoid_of(Operand y, const Tensor& x, std::optional<Scalar> dx, int64_t dim) {
  return x.defined() ? cumulative_trapezoid(y, x, dim) : cumulative_trapezoid(y, dx.value_or(1), dim);
}

// What is not asked for is left out.
Tensors given(const UniqueResult& result) {
  Tensors all;
  for (const Tensor* t : {&result.output, &result.inverse_indices, &result.counts})
    if (t->defined()) all.push_back(*t);
  return all;
}
Tensors unique_of(Operand x, bool sorted, bool return_inverse, bool return_counts, OptionalDim dim) {
  return given(unique(x, sorted, return_inverse, return_counts, dim));
}
Tensors unique_consecutive_of(Operand x, bool return_inverse, bool return_counts, OptionalDim dim) {
  return given(unique_consecutive(x, return_inverse, return_counts, dim));
}

constexpr Binding kBindings[] = {
    {"nansum", call<nansum>},
    {"nanmean", call<nanmean>},
    {"std_mean", call<std_mean>},
    {"var_mean", call<var_mean>},
    {"aminmax", call<aminmax_of>},
    {"median", call<median_of>},
    {"nanmedian", call<nanmedian_of>},
    {"mode", call<mode>},
    {"kthvalue", call<kthvalue>},
    {"quantile", call<quantile>},
    {"nanquantile", call<nanquantile>},
    {"cummax", call<cummax>},
    {"cummin", call<cummin>},
    {"logcumsumexp", call<logcumsumexp>},
    {"dist", call<dist>},
    {"cdist", call<cdist>},
    {"pdist", call<pdist>},
    {"trapezoid", call<trapezoid_of>},
    {"cumulative_trapezoid", call<cumulative_trapezoid_of>},
    {"diff", call<diff>},
    {"histc", call<histc>},
    {"bincount", call<bincount>},
    {"unique", call<unique_of>},
    {"unique_consecutive", call<unique_consecutive_of>},
    {"searchsorted", call<searchsorted>},
    {"bucketize", call<bucketize>},
    {"cov", call<cov>},
    {"corrcoef", call<corrcoef>},
    {"renorm", call<renorm>},
};

}  // namespace

BindingList statistics_bindings() { return kBindings; }

}  // namespace retrograd::conformance
