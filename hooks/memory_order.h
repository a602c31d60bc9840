// MemoryOrder: the dims of a tensor by their order in memory, the slowest first.
//
// Through it, a tensor whose elements fill a block of memory is viewed as that block, row by row, and a row-major block
// gets the strides of that tensor again. Gaps between elements are closed in the process; dims of stride 0 (expanded
// ones) are treated like any other here.
#pragma once

#include "engine/tensor.h"

namespace retrograd::inline v0 {

class MemoryOrder {
 public:
  explicit MemoryOrder(const Tensor& tensor);

  /// A view of `tensor` with its dims in this order: row-major if the order was taken from a dense tensor.
  Tensor flatten(const Tensor& tensor) const;
  /// The inverse: `block` with its dims in the original order.
  Tensor restore(const Tensor& block) const;
  /// `tensor` in memory of its own, in this order.
  Tensor copy(const Tensor& tensor) const;

 private:
  IntArray to_memory_, back_;
};

/// Whether the tensor shows every element of a block of memory once.
bool fills_a_block(const Tensor& tensor);

/// A view with one entry in each dim of stride 0: the repeated part of an expanded tensor, once.
Tensor without_repeats(const Tensor& tensor);

}  // namespace retrograd
