// KeptMemory: the memory of tensors that a stock pair does not change, including views of it.
//
// A tensor belongs to it by its storage, whatever part of it the tensor shows. It is found by a binary search: pack
// hooks check every tensor that is saved.
#pragma once

#include <algorithm>
#include <vector>

#include "engine/tensor.h"

namespace retrograd::inline v0 {

class KeptMemory {
 public:
  explicit KeptMemory(const Tensors& tensors) {
    for (const Tensor& t : tensors) kept_.push_back(t.impl().storage());
    std::ranges::sort(kept_, {}, &RefPtr<Storage>::get);
  }
  bool holds(const Tensor& tensor) const {
    return std::ranges::binary_search(kept_, tensor.impl().storage().get(), {}, &RefPtr<Storage>::get);
  }

 private:
  std::vector<RefPtr<Storage>> kept_;  // sorted; held, so that no other storage gets the same address
};

}  // namespace retrograd
