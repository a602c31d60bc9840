// Functions of ops/shrinkage.h that are more than a call of an op.
#include "ops/shrinkage.h"

#include <fmt/format.h>

#include "engine/named_call.h"
#include "ops/shape_ops.h"
#include "ops/views.h"

namespace retrograd::inline v0 {

Tensor softshrink(Operand input, Scalar lambd) {
  if (lambd < Scalar(0))
    fail(Category::bad_argument, "softshrink", fmt::format("lambd {} is negative", to_string(lambd)),
         input.where());
  return ops::Function<ops::Softshrink>()(input, lambd);
}

Tensor prelu(Operand input, Operand weight) {
  const NamedCall call("prelu", input.where());
  const Tensor &x = input.defined_tensor("prelu"), &w = weight.defined_tensor("prelu");
  const auto refuse = [&](Category category, std::string_view what) {
    fail(category, "prelu", fmt::format("weight {} for an input {}: {}", describe(w), describe(x), what),
         input.where());
  };
  if (w.dtype() != x.dtype()) refuse(Category::dtype_mismatch, "the dtypes differ");
  if (w.dim() > 1) refuse(Category::bad_dim, "a weight has no dims or one");
  const Dim count = w.impl().numel();
  if (count == 1 || x.dim() == 0) {
    if (!(count == 1)) refuse(Category::shape_mismatch, "one element is wanted");
    return ops::Function<ops::Prelu>()(input, reshape_to(weight, {}));
  }
  const int channel = x.dim() > 1 ? 1 : 0;
  if (!(count == x.impl().shape()[channel]))
    refuse(Category::shape_mismatch, "it is not one element per channel");
  Shape shape;
  for (int d = channel; d < x.dim(); ++d) shape.push_back(d == channel ? count : Dim(1));
  return ops::Function<ops::Prelu>()(input, reshape_to(weight, shape));
}

Tensor glu(Operand input, int64_t dim) {
  const NamedCall call("glu", input.where());
  const Tensor& x = input.defined_tensor("glu");
  if (x.dim() == 0) fail(Category::bad_dim, "glu", "a tensor without dims has no halves", input.where());
  const int d = wrap_dim(dim, static_cast<int>(x.dim()), "glu");
  const Dim size = x.impl().shape()[d];
  if (!(size % 2 == 0))
    fail(Category::shape_mismatch, "glu", fmt::format("dim {} of {} has no halves", dim, describe(x)),
         input.where());
  const Dim half = size / 2;
  return ops::Function<ops::Glu>()(narrow(input, d, 0, half), narrow(input, d, half, half));
}

}  // namespace retrograd
