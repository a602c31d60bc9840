// Elementwise functions beyond those of unary.cc, binary.cc and activation.cc.
#include "ops/bitwise.h"
#include "ops/composed.h"
#include "ops/float_ops.h"
#include "ops/shrinkage.h"
#include "ops/special.h"

#include "tests/conformance/bindings/families.h"

namespace retrograd::conformance {
namespace {

constexpr Binding kBindings[] = {
    {"positive", call<positive>},
    {"sgn", call<sgn>},
    {"signbit", call<signbit>},
    {"isposinf", call<isposinf>},
    {"isneginf", call<isneginf>},
    {"deg2rad", call<deg2rad>},
    {"rad2deg", call<rad2deg>},
    {"sinc", call<sinc>},
    {"logit", call<logit>},
    {"polygamma", call<polygamma>},
    {"special_entr", call<special::entr>},
    {"special_erfcx", call<special::erfcx>},
    {"special_i0", call<special::i0>},
    {"special_i0e", call<special::i0e>},
    {"special_i1", call<special::i1>},
    {"special_i1e", call<special::i1e>},
    {"special_ndtr", call<special::ndtr>},
    {"special_ndtri", call<special::ndtri>},
    {"special_log_ndtr", call<special::log_ndtr>},
    {"special_xlog1py", call<special::xlog1py>},
    {"xlogy", call<xlogy>},
    {"logaddexp2", call<logaddexp2>},
    {"rsub", call<rsub>},
    {"floor_divide", call<floor_divide>},
    {"float_power", call<float_power>},
    {"clamp_min", call<clamp_min>},
    {"clamp_max", call<clamp_max>},
    {"copysign", call<copysign>},
    {"heaviside", call<heaviside>},
    {"nextafter", call<nextafter>},
    {"ldexp", call<ldexp>},
    {"fmax", call<fmax>},
    {"fmin", call<fmin>},
    {"isclose", call<isclose>},
    {"allclose", call<allclose>},
    {"equal", call<equal>},
    {"bitwise_not", call<bitwise_not>},
    {"bitwise_and", call<bitwise_and>},
    {"bitwise_or", call<bitwise_or>},
    {"bitwise_xor", call<bitwise_xor>},
    {"bitwise_left_shift", call<bitwise_left_shift>},
    {"bitwise_right_shift", call<bitwise_right_shift>},
    {"gcd", call<gcd>},
    {"lcm", call<lcm>},
    {"tanhshrink", call<tanhshrink>},
    {"softshrink", call<softshrink>},
    {"hardshrink", call<hardshrink>},
    {"prelu", call<prelu>},
    {"glu", call<glu>},
    {"softmin", call<softmin>},
    {"normalize", call<normalize>},
};

}  // namespace

BindingList elementwise_more_bindings() { return kBindings; }

}  // namespace retrograd::conformance
