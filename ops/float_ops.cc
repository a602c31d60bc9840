// Functions of ops/float_ops.h that are more than a call of an op.
#include "ops/float_ops.h"

#include <fmt/format.h>

#include "engine/named_call.h"
#include "ops/comparison.h"
#include "ops/creation.h"
#include "ops/reduce.h"
#include "ops/shape_ops.h"

namespace retrograd::inline v0 {
namespace {

void check_same_dtype(const Operand& a, const Operand& b, std::string_view op) {
  const Tensor &x = a.defined_tensor(op), &y = b.defined_tensor(op);
  if (x.dtype() != y.dtype())
    fail(Category::dtype_mismatch, op,
         fmt::format("operands {} and {} have different dtypes; convert one with to()", describe(x),
                     describe(y)),
         a.where());
}

}  // namespace

Tensor heaviside(Operand input, Operand values) {
  check_same_dtype(input, values, "heaviside");
  return ops::Function<ops::Heaviside>()(input, values);
}

Tensor nextafter(Operand input, Operand other) {
  const NamedCall call("nextafter", input.where());
  const Operand both[] = {input, other};
  ops::Prepared p;
  ops::prepare(p, ops::typing<ops::Nextafter>, both, input.where());
  const ScalarType dtype = p.operands[0]->dtype();
  if (dtype == kFloat16)
    fail(Category::dtype_mismatch, "nextafter", "it is not defined for float16", input.where());
  return ops::emit<ops::Nextafter>({p.operands[0], p.operands[1]}, {dtype == kBFloat16}, input.where());
}

Tensor ldexp(Operand input, Operand other) {
  const NamedCall call("ldexp", input.where());
  const ScalarType dtype = ops::compute_dtype(ops::typing<ops::Ldexp>, {&input, 1}, input.where());
  return ops::Function<ops::Ldexp>()(to(input, dtype), Operand(to(other, dtype), input.where()));
}

Tensor isclose(Operand input, Operand other, double rtol, double atol, bool equal_nan) {
  const NamedCall call("isclose", input.where());
  check_same_dtype(input, other, "isclose");
  if (!(rtol >= 0 && atol >= 0))
    fail(Category::bad_argument, "isclose",
         fmt::format("rtol {} or atol {} is negative or not a number", rtol, atol), input.where());
  const bool is_exact = is_integral(input.tensor().dtype(), true);
  if (is_exact && rtol == 0 && atol == 0) return eq(input, other);
  const Tensor a = is_exact ? to(input, kFloat64) : input.tensor(),
               b = is_exact ? to(other, kFloat64) : other.tensor();
  const Operand both[] = {Operand(a, input.where()), Operand(b, input.where())};
  ops::Prepared p;
  ops::prepare(p, ops::typing<ops::IsClose>, both, input.where());
  return ops::emit<ops::IsClose>({p.operands[0], p.operands[1]}, {rtol, atol, equal_nan}, input.where());
}

Condition allclose(Operand input, Operand other, double rtol, double atol, bool equal_nan) {
  const NamedCall call("allclose", input.where());
  return Condition(all(isclose(input, other, rtol, atol, equal_nan)));
}

Condition equal(Operand input, Operand other) {
  const NamedCall call("equal", input.where());
  check_same_dtype(input, other, "equal");
  const TensorImpl &a = input.tensor().impl(), &b = other.tensor().impl();
  if (!(a.shape() == b.shape())) return Condition(full({}, false, {kBool, a.device()}, input.where()));
  return Condition(all(eq(input, other)));
}

}  // namespace retrograd
