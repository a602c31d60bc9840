// Checks of attributes, for the type rules of all families.
//
// The attributes of a node may come from a text or a file: each may have any value. So a rule checks it before it is
// used, even if the public function has done so already, and before a 64-bit integer is converted to 32 bits. A symbol
// counts as its value at capture, without a guard: ir::concrete_type() checks other sizes.
#pragma once

#include <algorithm>

#include "ops/op.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::ops {

[[noreturn]] void refuse_dim(const Call& call, int64_t dim);

/// An attribute as one of `rank` dims. Error(bad_dim) if it is none.
inline int checked_dim(const Call& call, int64_t dim, int rank) {
  if (dim < 0 || dim >= rank) [[unlikely]]
    refuse_dim(call, dim);
  return static_cast<int>(dim);
}
/// Error(bad_dim) unless this is a dim of the first operand; a number counts as having one.
inline void check_dim(const Call& call, int64_t dim) {
  checked_dim(call, dim, std::max(call.operands[0]->rank(), 1));
}
/// Error(bad_dim) unless these are dims of the first operand, in ascending order.
void check_dims(const Call& call, const IntList& dims);
/// Error(bad_dim) unless these are distinct dims of the first operand, in any order.
void check_distinct_dims(const Call& call, const IntList& dims);
/// Error(bad_argument) for a negative size, or for more elements than fit into 63 bits.
void check_sizes(const Call& call, const Shape& sizes);

}  // namespace retrograd::ops
#pragma GCC visibility pop
