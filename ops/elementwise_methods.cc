// Methods of elementwise functions (engine/method_list.h).
#include "ops/activations.h"
#include "ops/arithmetic.h"
#include "ops/binary.h"
#include "ops/comparison.h"
#include "ops/define_methods.h"
#include "ops/ternary.h"
#include "ops/unary.h"

namespace retrograd::inline v0 {
namespace {

// A bound of clamp.
std::optional<Operand> given(const Tensor& bound) {
  return bound.defined() ? std::optional<Operand>(bound) : std::nullopt;
}

}  // namespace

RG_UNARY_METHODS(RG_METHOD, RG_BOTH, RG_IN_PLACE)
RG_BINARY_METHODS(RG_METHOD, RG_BOTH, RG_IN_PLACE)

Tensor Tensor::where(const Tensor& condition, const Operand& other, SourceLocation where) const {
  const CallScope call(where);
  return retrograd::where(Operand(condition, where), Operand(*this, where), other);
}

}  // namespace retrograd
