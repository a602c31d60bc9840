// The order that must be kept when pure nodes move, so that each node reads the same as in the old order.
//
// A node comes after the nodes that give its operands; an effect comes after the effect before it. A node that reads
// open memory (memory_classes.h), or that may fail (Trait::checks), stays between the two effects around it. A node
// that gives the value written to an input (OutsideWrite) comes after all earlier nodes that read the input, so that
// the value can still be computed in the input's memory.
#pragma once

#include "ir/passes/memory_classes.h"

namespace retrograd::inline v0::ir {

/// (of, number): the number belongs to the list of `of`.
using Pairs = std::vector<std::pair<int32_t, int32_t>>;

/// (a node, a node that must come before it), as far as the old order has them so. Some pairs are listed twice.
Pairs order_constraints(const Graph& graph, std::span<const OutsideWrite> writes);

// n lists of numbers: pairs (of, number) in one array.
class Lists {
 public:
  Lists(size_t n, const Pairs& pairs) : begins_(n + 1), all_(pairs.size()) {
    for (const auto& [of, number] : pairs) ++begins_[static_cast<size_t>(of) + 1];
    for (size_t i = 0; i < n; ++i) begins_[i + 1] += begins_[i];
    std::vector<size_t> next(begins_.begin(), begins_.end() - 1);
    for (const auto& [of, number] : pairs) all_[next[static_cast<size_t>(of)]++] = number;
  }
  std::span<const int32_t> operator[](size_t i) const {
    return {all_.data() + begins_[i], begins_[i + 1] - begins_[i]};
  }

 private:
  std::vector<size_t> begins_;
  std::vector<int32_t> all_;
};

}  // namespace retrograd::ir
