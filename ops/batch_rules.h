// Batching rules: how an op runs on operands that have a batch dim in front, for vmap (engine/batching.h).
//
// An op names its rule as its member `batch`, one of these or a function of its own in its family's file. An elementwise
// op has batch_elementwise unless it names another; an op without a rule is called once for each sample.
// This header is part of ops/op.h; what rules are made of is in ops/batching.h.
#pragma once

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

class BatchContext;

namespace ops {

/// Operands that broadcast: dims of size 1 are put after the batch dim where ranks differ.
void batch_elementwise(BatchContext& c);
/// An op that takes any dims before those that it names from the back, or that needs operands of one shape.
void batch_leading(BatchContext& c);
/// An op with attributes that count dims from the front (dim, dims, dim1, dim2, dimension, affine_dim), or that are
/// sizes of all dims (size, input_size).
void batch_dims(BatchContext& c);
/// An op whose operands have samples of their own as dim 0: the batch becomes part of that dim.
void batch_folded(BatchContext& c);
/// A random draw.
void batch_draw(BatchContext& c);

}  // namespace ops
}  // namespace retrograd
#pragma GCC visibility pop
