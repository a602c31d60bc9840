// Reductions and softmax.
#include "ops/reduce.h"
#include "ops/softmax.h"
#include "tests/conformance/bindings/families.h"

namespace retrograd::conformance {
namespace {

using OptionalDim = std::optional<int64_t>;  // one dim or none

Tensors max_of(Operand x, OptionalDim dim, bool keepdim) {
  return dim ? detail::results(max(x, *dim, keepdim)) : Tensors{max(x)};
}
Tensors min_of(Operand x, OptionalDim dim, bool keepdim) {
  return dim ? detail::results(min(x, *dim, keepdim)) : Tensors{min(x)};
}

Tensor prod_of(Operand x, OptionalDim dim, bool keepdim, std::optional<ScalarType> dtype) {
  return dim ? prod(x, *dim, keepdim, dtype) : prod(x, dtype);
}

Tensor norm_of(Operand x, const Json& p, const IntList& dim, bool keepdim) {
  return norm(x, p == "fro" ? Scalar(2) : to_scalar(p), dim, keepdim);
}

using Moment = Tensor (*)(Operand, const IntList&, Scalar, bool);

constexpr Binding kBindings[] = {
    {"sum", call<sum>},
    {"mean", call<mean>},
    {"prod", call<prod_of>},
    {"amax", call<amax>},
    {"amin", call<amin>},
    {"max", call<max_of>},
    {"min", call<min_of>},
    {"argmax", call<argmax>},
    {"argmin", call<argmin>},
    {"var", call<static_cast<Moment>(var)>},
    {"std", call<static_cast<Moment>(std)>},
    {"logsumexp", call<logsumexp>},
    {"vector_norm", call<vector_norm>},
    {"norm", call<norm_of>},
    {"all", call<all>},
    {"any", call<any>},
    {"count_nonzero", call<count_nonzero>},
    {"softmax", call<softmax>},
    {"log_softmax", call<log_softmax>},
};

}  // namespace

BindingList reduce_bindings() { return kBindings; }

}  // namespace retrograd::conformance
