// recompute: what the backward of a recorded function can compute anew is not saved by its forward. A saved
// value goes when elementwise ops, constants and views lead to it from other saved values: the same ops on the
// same operands give the same bits.
//
// This is about two graphs, so it is no pass, but it comes before the passes and its name can be switched off
// like theirs. Of a forward, each saved value is an output; one that goes is replaced by another saved value,
// so that outputs keep their numbers. Of a backward, saved values are inputs; before its first use, one that
// goes is computed from the others. Its input stays, and nobody uses it.
//
// Limits: at most kMostNodes nodes lead to a value from what is saved or computed anew for its own sake, from
// kMostSources saved values; no ops that draw random numbers, run on the host, may fail, or take numbers that
// each run reads anew.
#pragma once

#include <functional>

#include "ir/graph.h"

namespace retrograd::ir {

class Recompute {
 public:
  static constexpr int kMostNodes = 6;
  static constexpr size_t kMostSources = 8;

  /// `saved`: values of the forward. `may_go`: whether nobody but backwards holds the memory of saved value number i.
  Recompute(const Graph& forward, std::vector<ValueId> saved, const std::function<bool(size_t)>& may_go);
  Recompute() = default;

  bool any() const;
  /// Whether saved value number i is computed anew.
  bool goes(size_t i) const { return i < sources_.size() && !sources_[i].empty(); }
  /// The numbers of the saved values from which it is.
  std::span<const int32_t> sources(size_t i) const { return sources_[i]; }

  /// The outputs of the forward, where outputs[i] gives saved value number i. In place of one that goes, a source is given.
  void replace_outputs(Graph& forward, std::span<const int32_t> outputs) const;
  /// `saved`: of each input of a backward, which saved value of `forward` it is, or -1. Sources are among them.
  void compute_anew(Graph& backward, const Graph& forward, std::span<const int32_t> saved) const;

 private:
  std::vector<ValueId> saved_;                 // of the forward
  std::vector<std::vector<int32_t>> sources_;  // of each saved value; none: it is saved
};

}  // namespace retrograd::ir
