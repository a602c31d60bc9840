// Functions of one operand.
#include "ops/unary.h"
#include "ops/arithmetic.h"

#include "tests/conformance/bindings/families.h"

namespace retrograd::conformance {
namespace {

constexpr Binding kBindings[] = {
    {"neg", call<neg>},
    {"exp", call<exp>},
    {"exp2", call<exp2>},
    {"expm1", call<expm1>},
    {"log", call<log>},
    {"log2", call<log2>},
    {"log10", call<log10>},
    {"log1p", call<log1p>},
    {"sqrt", call<sqrt>},
    {"rsqrt", call<rsqrt>},
    {"reciprocal", call<reciprocal>},
    {"sin", call<sin>},
    {"cos", call<cos>},
    {"tan", call<tan>},
    {"asin", call<asin>},
    {"acos", call<acos>},
    {"atan", call<atan>},
    {"sinh", call<sinh>},
    {"cosh", call<cosh>},
    {"asinh", call<asinh>},
    {"acosh", call<acosh>},
    {"atanh", call<atanh>},
    {"erf", call<erf>},
    {"erfc", call<erfc>},
    {"erfinv", call<erfinv>},
    {"lgamma", call<lgamma>},
    {"digamma", call<digamma>},
    {"abs", call<abs>},
    {"square", call<square>},
    {"sign", call<sign>},
    {"floor", call<floor>},
    {"ceil", call<ceil>},
    {"trunc", call<trunc>},
    {"frac", call<frac>},
    {"round", call<round>},
    {"isnan", call<isnan>},
    {"isinf", call<isinf>},
    {"isfinite", call<isfinite>},
    {"logical_not", call<logical_not>},
    {"nan_to_num", call<nan_to_num>},
};

}  // namespace

BindingList unary_bindings() { return kBindings; }

}  // namespace retrograd::conformance
