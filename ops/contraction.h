// einsum and tensordot: sums of products over named or numbered dims, made of permute, reshape, sum and
// matrix products.
#pragma once

#include <string_view>

#include "engine/op.h"
#include "engine/tensor.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

/// Einstein's notation as in torch.einsum: "bij,bjk->bik". One letter per dim; a letter that occurs twice in an operand
/// takes its diagonal; letters missing on the right are summed over. "..." stands for dims that are broadcast. Without
/// "->" the result has the letters that occur once, in alphabetical order. Operands are multiplied from left to right
/// and have one dtype. Errors: bad_argument (equation, or letters that do not fit an operand's dims), shape_mismatch,
/// dtype_mismatch.
Tensor einsum(std::string_view equation, const Tensors& operands,
              SourceLocation where = SourceLocation::current());

/// Sum over the products of the last `dims` dims of a and the first of b.
Tensor tensordot(Operand a, const Tensor& b, int64_t dims = 2);
/// The same over dims_a[i] of a and dims_b[i] of b. A dim of size 1 is broadcast. Errors: bad_argument,
/// bad_dim, shape_mismatch.
Tensor tensordot(Operand a, const Tensor& b, const IntList& dims_a, const IntList& dims_b);

}  // namespace retrograd
#pragma GCC visibility pop
