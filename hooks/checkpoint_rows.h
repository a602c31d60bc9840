// checkpoint_rows: a function whose results have a row for each row of its inputs, run on some rows at a time, each time
// as a checkpoint (hooks/checkpoint.h). So what it computes in between exists for that many rows only, in the forward
// and in the backward.
//
//   Tensor y = checkpoint_rows([&](const Tensor& rows) { return mm(gelu(mm(rows, w1)), w2); }, x, 256);
//
// Rows are entries of dim 0. A row of the result may depend on the same row of the inputs and on what the function
// captures, such as weights; not on other rows, as that of a batch norm does. Values are those of the function on all
// rows; gradients of what it captures are sums over pieces, in another order.
//
// Costs: the function once more in each backward; for each piece, a gradient of the shape of each input.
// Limit: a recorded function has the number of pieces, and so the number of rows, fixed.
#pragma once

#include "hooks/checkpoint.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

/// function(inputs) on at most `rows` rows at a time, joined along dim 0. Without rows the function runs once.
/// Error(bad_argument) for rows < 1, without inputs, and if a result does not have a row for each row of its inputs;
/// Error(shape_mismatch) if the inputs have different numbers of rows; Error(bad_dim) for an input without dims.
Tensor checkpoint_rows(const std::function<Tensor(const Tensors&)>& function, const Tensors& inputs,
                       int64_t rows, const CheckpointOptions& options = {},
                       SourceLocation where = SourceLocation::current());
/// The same for a function of one tensor.
Tensor checkpoint_rows(const std::function<Tensor(const Tensor&)>& function, const Tensor& input,
                       int64_t rows, const CheckpointOptions& options = {},
                       SourceLocation where = SourceLocation::current());

}  // namespace retrograd
#pragma GCC visibility pop
