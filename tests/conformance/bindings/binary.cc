// Functions of two or three operands that broadcast.
#include "ops/binary.h"
#include "ops/arithmetic.h"
#include "ops/comparison.h"
#include "ops/ternary.h"

#include "tests/conformance/bindings/families.h"

namespace retrograd::conformance {
namespace {

constexpr Binding kBindings[] = {
    {"add", call<add>},
    {"sub", call<sub>},
    {"mul", call<mul>},
    {"div", call<div>},
    {"pow", call<pow>},
    {"atan2", call<atan2>},
    {"hypot", call<hypot>},
    {"logaddexp", call<logaddexp>},
    {"maximum", call<maximum>},
    {"minimum", call<minimum>},
    {"fmod", call<fmod>},
    {"remainder", call<remainder>},
    {"eq", call<eq>},
    {"ne", call<ne>},
    {"lt", call<lt>},
    {"le", call<le>},
    {"gt", call<gt>},
    {"ge", call<ge>},
    {"logical_and", call<logical_and>},
    {"logical_or", call<logical_or>},
    {"logical_xor", call<logical_xor>},
    {"where", call<where>},
    {"lerp", call<lerp>},
    {"addcmul", call<addcmul>},
    {"addcdiv", call<addcdiv>},
    {"clamp", call<clamp>},
};

}  // namespace

BindingList binary_bindings() { return kBindings; }

}  // namespace retrograd::conformance
