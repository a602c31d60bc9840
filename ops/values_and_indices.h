// What functions give that choose elements along a dim: sort, topk, max, min, kthvalue, median, mode, cummax, cummin.
#pragma once

#include "ops/named_tensors.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

/// Of one shape; indices int64, positions along the dim.
RG_NAMED_PAIR(ValuesAndIndices, values, indices);

}  // namespace retrograd
#pragma GCC visibility pop
