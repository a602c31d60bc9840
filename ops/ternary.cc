// Public functions of ops/ternary.h that consist of more than one op.
#include "ops/ternary.h"

#include <limits>

#include <fmt/format.h>

#include "engine/named_call.h"
#include "ops/activations.h"
#include "ops/binary.h"
#include "ops/shape_ops.h"

namespace retrograd::inline v0 {

void ops::Where::infer(const Call& call, TensorImpl* const* outputs) {
  if (call.operands[0]->dtype() != kBool)
    fail_call(call, Category::dtype_mismatch, "the condition is not bool");
  infer_elementwise_from(1, call, outputs);
}

Tensor where(Operand condition, Operand input, Operand other) {
  const SourceLocation at = condition.where();
  const NamedCall call("where", at);
  const ScalarType kind = condition.tensor().dtype();
  if (kind != kBool && kind != kUInt8)
    fail(Category::dtype_mismatch, "where",
         fmt::format("the condition {} is not bool", describe(condition.tensor())), at);
  const Tensor holds = to(condition, kBool);
  const Operand all[] = {Operand(holds, at), input, other};
  ops::Prepared p;
  ops::Typing typing = ops::typing<ops::Where>;
  typing.first = 1;
  ops::prepare(p, typing, all, at);
  return ops::emit<ops::Where>({p.operands[0], p.operands[1], p.operands[2]}, {p.scalar}, at);
}

Tensor lerp(Operand input, Operand end, Operand weight) {
  const NamedCall call("lerp", input.where());
  const ScalarType dtype = input.tensor().dtype();
  if (end.tensor().dtype() != dtype || (!weight.is_scalar() && weight.tensor().dtype() != dtype) ||
      !is_floating(dtype))
    fail(Category::dtype_mismatch, "lerp",
         fmt::format("operands {} and {} must have one floating dtype", describe(input.tensor()),
                     describe(end.tensor())),
         input.where());
  return ops::Function<ops::Lerp>()(input, end, weight);
}

Tensor addcmul(Operand input, Operand tensor1, Operand tensor2, Scalar value) {
  return ops::Function<ops::Addcmul>()(input, tensor1, tensor2, {value});
}

Tensor addcdiv(Operand input, Operand tensor1, Operand tensor2, Scalar value) {
  if (is_integral(tensor1.tensor().dtype(), true) && is_integral(tensor2.tensor().dtype(), true))
    fail(Category::dtype_mismatch, "addcdiv", "integers are not divided by integers", input.where());
  return ops::Function<ops::Addcdiv>()(input, tensor1, tensor2, {value});
}

namespace {

// Both bounds are numbers or absent; an absent one is beyond all values of the dtype.
Tensor clamp_to_numbers(Operand x, const std::optional<Operand>& min, const std::optional<Operand>& max) {
  const Operand all[] = {x, min.value_or(x), max.value_or(x)};
  const ScalarType dtype = ops::compute_dtype(ops::typing<ops::Clamp>, all, x.where());
  const bool floating = is_floating(dtype);
  constexpr double inf = std::numeric_limits<double>::infinity();
  using Int = std::numeric_limits<int64_t>;
  const Scalar low = min ? min->scalar() : floating ? Scalar(-inf) : Scalar(Int::min());
  const Scalar high = max ? max->scalar() : floating ? Scalar(inf) : Scalar(Int::max());
  const Tensor converted = to(x, dtype);
  return ops::emit<ops::Clamp>({converted.get()}, {low, high}, x.where());
}

}  // namespace

Tensor clamp(Operand x, std::optional<Operand> min, std::optional<Operand> max) {
  const NamedCall call("clamp", x.where());
  if (!min && !max) fail(Category::bad_argument, "clamp", "neither min nor max is given", x.where());
  if ((!min || min->is_scalar()) && (!max || max->is_scalar())) return clamp_to_numbers(x, min, max);
  if (!min) return minimum(x, *max);
  const Tensor above = maximum(x, *min);
  return max ? minimum(Operand(above, x.where()), *max) : above;
}

}  // namespace retrograd
