// What the ops that take index tensors share. Type rules: the indexed dim, and whether an index fits. Public functions:
// numbers as vectors of one element, and negative positions. This header is for source files.
#pragma once

#include <fmt/format.h>

#include "ops/attributes.h"
#include "ops/family_parts.h"
#include "ops/index_ops.h"
#include "ops/indexing.h"

namespace retrograd::inline v0::ops {

inline int indexed_dim(const Call& call, int64_t dim) {
  return checked_dim(call, dim, call.operands[0]->rank());
}

inline const Shape& index_shape(const Call& call) {
  if (call.operands[1]->dtype() != kInt64)
    fail_call(call, Category::dtype_mismatch, "the index is not int64");
  return call.operands[1]->shape();
}

inline void check_same_dtype(const Call& call, const TensorImpl& src) {
  if (src.dtype() != call.operands[0]->dtype())
    fail_call(call, Category::dtype_mismatch, "input and source have different dtypes");
}

/// The index of a gather or scatter must have the input's rank, and sizes that fit into those of `limit` (in `dim` only
/// if all_dims).
inline void check_fits(const Call& call, const Shape& index, const Shape& limit, int dim, bool all_dims) {
  if (index.numel() == 0) return;
  if (index.rank() != limit.rank())
    fail_call(call, Category::bad_dim, "the index has another number of dimensions");
  for (int i = 0; i < index.rank(); ++i)
    if ((all_dims || i != dim) && index[i] > limit[i])
      fail_call(call, Category::shape_mismatch, fmt::format("the index is too large in dim {}", i));
}

/// `x` and a dim of it for an op that needs one: a tensor without dims counts as a vector of one element.
struct Lifted {
  Tensor tensor;
  int dim;

  Lifted(Operand x, int64_t wanted, std::string_view op)
      : tensor(shape_of(x).rank() ? x.tensor() : reshape_to(x, {1})),
        dim(wrap_dim(wanted, shape_of(x).rank(), op)) {}
  TensorImpl* get() const { return tensor.get(); }
};

inline Tensor lift(const Tensor& x, SourceLocation where) {
  return x.dim() ? x : reshape_to(Operand(x, where), {1});
}

/// The reverse: a result in the shape of what was lifted.
inline Tensor lower(const Tensor& result, const Shape& shape, SourceLocation where) {
  return shape_of(result) == shape ? result : reshape_to(Operand(result, where), shape);
}

/// Positions among `size` entries; negative ones are counted from the end.
inline Tensor wrapped(const Tensor& index, Dim size, SourceLocation where) {
  return emit<FlatIndex>({index.get()}, {{size}}, where);
}

}  // namespace retrograd::ops
