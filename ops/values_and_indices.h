// What functions give that choose elements along a dim: sort, topk, max, min, kthvalue, median, mode, cummax, cummin.
//
// An aggregate, so that it also unpacks like libtorch's tuples: auto [values, indices] = sort(x).
#pragma once

#include "engine/tensor.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

struct ValuesAndIndices {
  Tensor values, indices;  // of one shape; indices int64, positions along the dim
};

}  // namespace retrograd
#pragma GCC visibility pop
