// MemoryOrder: the dims of a tensor by how they lie in memory, the slowest first.
//
// Through it a tensor whose elements fill a block of memory is seen as that block, row by row, and a
// row-major block is given the strides of that tensor again. Gaps between elements are closed on the way;
// dims of stride 0 (expanded ones) are like any other here.
#pragma once

#include "engine/tensor.h"

namespace retrograd {

class MemoryOrder {
 public:
  explicit MemoryOrder(const Tensor& tensor);

  /// A view of `tensor` with its dims in this order: row-major if the tensor that the order is of is dense.
  Tensor flatten(const Tensor& tensor) const;
  /// The opposite: `block` with its dims where they were.
  Tensor restore(const Tensor& block) const;
  /// `tensor` in memory of its own, in this order.
  Tensor copy(const Tensor& tensor) const;

 private:
  IntArray to_memory_, back_;
};

/// Every element of a block of memory, each once.
bool fills_a_block(const Tensor& tensor);

/// A view with one entry in each dim of stride 0: what an expanded tensor repeats, once.
Tensor without_repeats(const Tensor& tensor);

}  // namespace retrograd
