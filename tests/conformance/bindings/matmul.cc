// Matrix products, einsum, tensordot and attention.
#include "ops/matmul.h"
#include "ops/attention.h"
#include "ops/contraction.h"
#include "tests/conformance/bindings/families.h"

namespace retrograd::conformance {
namespace {

Tensor einsum_of(const Tensors& operands, std::string_view equation) { return einsum(equation, operands); }

Tensor tensordot_of(Operand a, const Tensor& b, const Json& dims) {
  if (dims.is_number_integer()) return tensordot(a, b, dims.get<int64_t>());
  return tensordot(a, b, IntList(dims.at(0).get<IntArray>()), IntList(dims.at(1).get<IntArray>()));
}

// The format has no dropout.
Tensor attention_of(Operand query, const Tensor& key, const Tensor& value, const Tensor& attn_mask,
                    bool is_causal, std::optional<Scalar> scale) {
  return scaled_dot_product_attention(query, key, value, attn_mask, 0, is_causal, scale);
}

constexpr Binding kBindings[] = {
    {"mm", call<mm>},
    {"bmm", call<bmm>},
    {"matmul", call<matmul>},
    {"addmm", call<addmm>},
    {"baddbmm", call<baddbmm>},
    {"linear", call<linear>},
    {"dot", call<dot>},
    {"mv", call<mv>},
    {"outer", call<outer>},
    {"einsum", call<einsum_of>},
    {"tensordot", call<tensordot_of>},
    {"scaled_dot_product_attention", call<attention_of>},
};

}  // namespace

BindingList matmul_bindings() { return kBindings; }

}  // namespace retrograd::conformance
