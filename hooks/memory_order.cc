// See hooks/memory_order.h.
#include "hooks/memory_order.h"

#include <algorithm>
#include <numeric>

#include "ops/shape_ops.h"
#include "ops/views.h"

namespace retrograd::inline v0 {

MemoryOrder::MemoryOrder(const Tensor& tensor)
    : to_memory_(static_cast<size_t>(tensor.dim())), back_(to_memory_.size()) {
  std::iota(to_memory_.begin(), to_memory_.end(), 0);
  std::ranges::stable_sort(to_memory_, std::greater(), [&](int64_t dim) { return tensor.stride(dim); });
  for (size_t i = 0; i < back_.size(); ++i)
    back_[static_cast<size_t>(to_memory_[i])] = static_cast<int64_t>(i);
}

Tensor MemoryOrder::flatten(const Tensor& tensor) const { return permute(tensor, to_memory_); }
Tensor MemoryOrder::restore(const Tensor& block) const { return permute(block, back_); }
Tensor MemoryOrder::copy(const Tensor& tensor) const { return restore(clone(flatten(tensor))); }

Tensor without_repeats(const Tensor& tensor) {
  Tensor once = tensor;
  for (int64_t dim = 0; dim < tensor.dim(); ++dim)
    if (tensor.stride(dim) == 0 && tensor.size(dim) > 1) once = narrow(once, dim, 0, 1);
  return once;
}

bool fills_a_block(const Tensor& tensor) { return MemoryOrder(tensor).flatten(tensor).is_contiguous(); }

}  // namespace retrograd
