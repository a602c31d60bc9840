// Methods of views, of rearrangements, and of functions of indices (engine/method_list.h).
#include "ops/define_methods.h"
#include "ops/index_ops.h"
#include "ops/indexing.h"
#include "ops/rearrange.h"
#include "ops/views.h"

namespace retrograd::inline v0 {

RG_SHAPE_METHODS(RG_METHOD, RG_BOTH, RG_GEOMETRY)
RG_INDEX_METHODS(RG_METHOD, RG_BOTH)

Tensor Tensor::operator[](const Operand& index) const {
  const CallScope call(index.where());
  if (!index.is_scalar()) return this->index({index.tensor()}, index.where());
  const Scalar i = index.scalar();
  if (i.kind() != Number::Kind::Int)
    fail(Category::bad_argument, "index", "a number in brackets must be an integer", index.where());
  return retrograd::select(Operand(*this, index.where()), 0, i.to_int());
}

Tensor Tensor::index(const Indices& indices, SourceLocation where) const {
  return getitem(Operand(*this, where), indices);
}

const Tensor& Tensor::index_put_(const Indices& indices, const Operand& values, bool accumulate,
                                 SourceLocation where) const {
  const CallScope call(where);
  return setitem_(*this, indices, values, accumulate);
}

}  // namespace retrograd
