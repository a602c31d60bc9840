// See engine/basic_ops.h.
#include "engine/basic_ops.h"

#include "ops/arithmetic.h"
#include "ops/copy.h"
#include "ops/creation.h"
#include "ops/join.h"
#include "ops/reduce.h"
#include "ops/shape_ops.h"
#include "ops/unary.h"
#include "ops/views.h"

namespace retrograd::inline v0::basic {

Tensor add(const Operand& a, const Operand& b) { return retrograd::add(a, b); }
void add_in_place(const Tensor& into, const Tensor& x) { retrograd::add_in_place(into, x); }
Tensor alias(const Operand& x) { return retrograd::alias(x); }
Tensor cat(const Tensors& tensors, int64_t dim) { return retrograd::cat(tensors, dim); }
Tensor clone(const Operand& x) { return retrograd::clone(x); }
Tensor copy(const Operand& self, const Tensor& source) { return retrograd::copy(self, source); }
Tensor expand(const Operand& x, const Shape& shape) { return expand_to(x, shape); }
bool is_finite(const Tensor& x) { return count_nonzero(isfinite(x)).item<int64_t>() == x.numel(); }
Tensor ones(const TensorType& type, SourceLocation where) { return ones_of(type, where); }
Tensor to(const Operand& x, ScalarType dtype) { return retrograd::to(x, dtype); }
Tensor to(Emitter& emitter, TensorImpl& x, ScalarType dtype, SourceLocation where) {
  TensorImpl* operand = &x;
  ops::To::Attrs attrs{dtype};
  Tensor result;
  emitter.emit({&ops::info<ops::To>, {&operand, 1}, &attrs, where, 1}, &result);
  return result;
}
Tensor zeros(const TensorType& type, SourceLocation where) { return zeros_of(type, where); }

const OpInfo& clone_op() { return ops::info<ops::Clone>; }
const OpInfo& as_strided_op() { return ops::info<ops::AsStrided>; }
const OpInfo& as_strided_scatter_op() { return ops::info<ops::AsStridedScatter>; }

}  // namespace retrograd::basic
