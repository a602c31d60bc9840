// The operations that the engine calls itself: sums of gradients, copies, zeros, views of written memory. They are
// declared here and defined in ops/basic_ops.cc, since ops are written against the engine, which includes none of them.
#pragma once

#include "engine/emitter.h"
#include "engine/op.h"

namespace retrograd::inline v0 {

namespace basic {
Tensor add(const Operand& a, const Operand& b);
void add_in_place(const Tensor& into, const Tensor& x);
Tensor alias(const Operand& x);
Tensor cat(const Tensors& tensors, int64_t dim);
Tensor clone(const Operand& x);
/// `source` in the shape and dtype of self, as a write of it to self would give it.
Tensor copy(const Operand& self, const Tensor& source);
Tensor expand(const Operand& x, const Shape& shape);
/// Whether all elements are finite.
bool is_finite(const Tensor& x);
Tensor ones(const TensorType& type, SourceLocation where);
Tensor to(const Operand& x, ScalarType dtype);
/// The same, emitted into this emitter.
Tensor to(Emitter& emitter, TensorImpl& x, ScalarType dtype, SourceLocation where);
Tensor zeros(const TensorType& type, SourceLocation where);

/// clone: (x) -> a copy. as_strided: (base) -> a view. as_strided_scatter: (base, values of the view) -> a new base. The
/// attributes of the latter two are a Geometry (engine/geometry.h).
const OpInfo& clone_op();
const OpInfo& as_strided_op();
const OpInfo& as_strided_scatter_op();
}  // namespace basic

namespace ops {
/// Calls the op once for each sample.
void batch_by_loop(BatchContext& c);
/// The batching rule of ops that need operands of one shape (ops/batch_rules.h).
void batch_leading(BatchContext& c);
/// The type rule of elementwise ops (ops/elementwise.h).
void infer_elementwise(const Call& call, TensorImpl* const* outputs);
}  // namespace ops

}  // namespace retrograd
