// Views, and copies that keep the order of elements.
#include "ops/copy.h"
#include "ops/creation.h"
#include "ops/shape_ops.h"
#include "ops/views.h"
#include "tests/conformance/bindings/families.h"

namespace retrograd::conformance {
namespace {

Tensors split_by(Operand x, const Json& sizes, int64_t dim) {
  return sizes.is_array() ? split(x, sizes.get<IntArray>(), dim) : split(x, sizes.get<int64_t>(), dim);
}

Tensor squeeze_of(Operand x, std::optional<IntArray> dim) { return dim ? squeeze(x, *dim) : squeeze(x); }

template <auto F>
Tensor triangle(int64_t row, int64_t col, int64_t offset, ScalarType dtype) {
  return F(row, col, offset, {dtype}, SourceLocation::current());
}

constexpr Binding kBindings[] = {
    {"detach", call<detach>},
    {"clone", call<clone>},
    {"contiguous", call<contiguous>},
    {"to", call<static_cast<Tensor (*)(Operand, ScalarType)>(to)>},
    {"expand", call<expand>},
    {"broadcast_to", call<broadcast_to>},
    {"view", call<view>},
    {"reshape", call<reshape>},
    {"permute", call<permute>},
    {"transpose", call<transpose>},
    {"copy", call<copy>},
    {"fill", call<fill>},
    {"zero", call<zero>},
    {"zeros_like", [](const Arguments& a) -> Tensors { return {zeros_like(a[0].as<Operand>())}; }},
    {"ones_like", [](const Arguments& a) -> Tensors { return {ones_like(a[0].as<Operand>())}; }},
    {"t", call<t>},
    {"narrow", call<narrow>},
    {"select", call<select>},
    {"slice", call<slice>},
    {"squeeze", call<squeeze_of>},
    {"unsqueeze", call<unsqueeze>},
    {"flatten", call<flatten>},
    {"movedim", call<movedim>},
    {"diagonal", call<diagonal>},
    {"unfold", call<unfold>},
    {"as_strided", call<as_strided>},
    {"split", call<split_by>},
    {"chunk", call<chunk>},
    {"unbind", call<unbind>},
    {"tril_indices", call<triangle<tril_indices>>},
    {"triu_indices", call<triangle<triu_indices>>},
};

}  // namespace

BindingList shape_bindings() { return kBindings; }

}  // namespace retrograd::conformance
