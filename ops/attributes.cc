// See ops/attributes.h.
#include "ops/attributes.h"

#include <fmt/format.h>

namespace retrograd::inline v0::ops {

void refuse_dim(const Call& call, int64_t dim) {
  fail_call(call, Category::bad_dim, fmt::format("dim {} is out of range", dim));
}

void check_dims(const Call& call, const IntList& dims) {
  for (int i = 0; i < dims.size(); ++i)
    if (dims[i] < 0 || dims[i] >= call.operands[0]->rank() || (i && dims[i] <= dims[i - 1]))
      fail_call(call, Category::bad_dim, "its dims are not dims of the operand, in ascending order");
}

void check_distinct_dims(const Call& call, const IntList& dims) {
  uint32_t seen = 0;
  for (int64_t dim : dims) {
    const uint32_t bit = uint32_t{1} << checked_dim(call, dim, call.operands[0]->rank());
    if (seen & bit) fail_call(call, Category::bad_dim, fmt::format("dim {} is given twice", dim));
    seen |= bit;
  }
}

void check_sizes(const Call& call, const Shape& sizes) {
  int64_t extent = 1;
  bool fits = true;
  for (Dim d : sizes) {
    const int64_t size = d.hint();
    if (size < 0)
      fail_call(call, Category::bad_argument, fmt::format("a size is negative: {}", to_string(sizes)));
    fits &= !__builtin_mul_overflow(extent, std::max<int64_t>(size, 1), &extent);
  }
  if (!fits)
    fail_call(call, Category::bad_argument,
              fmt::format("the number of elements of {} does not fit into 63 bits", to_string(sizes)));
}

}  // namespace retrograd::ops
