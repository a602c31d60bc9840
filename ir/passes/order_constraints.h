// What must come before what when pure nodes move, so that each node reads what it read in the old order.
//
// Before a node come those that give its operands; before an effect the effect before it; before a node
// that reads open memory (memory_classes.h), or that may fail (Trait::checks), the last effect before it,
// and the next effect comes after it. Before a node that gives what is written to an input (OutsideWrite) come all that read the input
// and stood before it, so that the value can still be computed there.
#pragma once

#include "ir/passes/memory_classes.h"

namespace retrograd::ir {

/// (of, number): the number belongs to the list of `of`.
using Pairs = std::vector<std::pair<int32_t, int32_t>>;

/// (a node, a node that must come before it), where the old order has them so. Some pairs stand there
/// twice.
Pairs order_constraints(const Graph& graph, std::span<const OutsideWrite> writes);

// Lists of numbers, one for each of n: pairs (of, number) in one array.
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
