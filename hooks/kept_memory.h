// KeptMemory: the memory of tensors that a stock pair leaves alone, views of it included.
#pragma once

#include <algorithm>
#include <vector>

#include "engine/tensor.h"

namespace retrograd {

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
  std::vector<RefPtr<Storage>> kept_;  // sorted; held, so that no other storage gets such an address
};

}  // namespace retrograd
