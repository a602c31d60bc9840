// Other names and forms of views and joins, copies with a view replaced, and more functions of positions.
#include "ops/index_functions.h"
#include "ops/reshaping.h"
#include "ops/scatter_reduce.h"
#include "ops/stacking.h"
#include "ops/view_scatter.h"
#include "tests/conformance/bindings/families.h"

namespace retrograd::conformance {
namespace {

Tensors tensor_split_by(Operand x, const Json& parts, int64_t dim) {
  return parts.is_array() ? tensor_split(x, parts.get<IntArray>(), dim)
                          : tensor_split(x, parts.get<int64_t>(), dim);
}

Tensors hsplit_by(Operand x, const Json& parts) {
  return parts.is_array() ? hsplit(x, parts.get<IntArray>()) : hsplit(x, parts.get<int64_t>());
}

Tensors vsplit_by(Operand x, const Json& parts) {
  return parts.is_array() ? vsplit(x, parts.get<IntArray>()) : vsplit(x, parts.get<int64_t>());
}

constexpr Binding kBindings[] = {
    {"hstack", call<hstack>},
    {"vstack", call<vstack>},
    {"dstack", call<dstack>},
    {"column_stack", call<column_stack>},
    {"block_diag", call<block_diag>},
    {"cartesian_prod", call<cartesian_prod>},
    {"meshgrid", call<meshgrid>},
    {"tensor_split", call<tensor_split_by>},
    {"hsplit", call<hsplit_by>},
    {"vsplit", call<vsplit_by>},
    {"rot90", call<rot90>},
    {"fliplr", call<fliplr>},
    {"flipud", call<flipud>},
    {"ravel", call<ravel>},
    {"atleast_1d", call<static_cast<Tensor (*)(Operand)>(atleast_1d)>},
    {"atleast_2d", call<static_cast<Tensor (*)(Operand)>(atleast_2d)>},
    {"swapaxes", call<swapaxes>},
    {"unflatten", call<unflatten>},
    {"view_as", call<view_as>},
    {"reshape_as", call<reshape_as>},
    {"expand_as", call<expand_as>},
    {"diag_embed", call<diag_embed>},
    {"diagflat", call<diagflat>},
    {"diagonal_scatter", call<diagonal_scatter>},
    {"select_scatter", call<select_scatter>},
    {"slice_scatter", call<slice_scatter>},
    {"as_strided_scatter", call<as_strided_scatter>},
    {"index_fill", call<index_fill>},
    {"index_reduce", call<index_reduce>},
    {"scatter_reduce", call<scatter_reduce>},
    {"put", call<put>},
    {"argwhere", call<argwhere>},
    {"isin", call<isin>},
    {"kron", call<kron>},
    {"vander", call<vander>},
};

}  // namespace

BindingList layout_bindings() { return kBindings; }

}  // namespace retrograd::conformance
