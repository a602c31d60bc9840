// recompute: values that the backward of a recorded function can recompute are not saved by its forward. A saved value
// is dropped when elementwise ops, constants and views compute it from other saved values: the same ops on the same
// operands give the same bits.
//
// This is the part of the pass `recompute` (ir/passes/recompute.cc) that concerns two graphs: it runs before the passes,
// and is switched off with that one. In a forward, each saved value is an output; a dropped one is replaced by another
// saved value, so that outputs keep their numbers. In a backward, saved values are inputs; a dropped one is computed from
// the others before its first use. Its input remains and is unused.
//
// Limits: a value is recomputed by at most kMostNodes nodes, from at most kMostSources saved values, or from values
// that are recomputed anyway. No ops that draw random numbers, run on the host, may fail, or take numbers that each run
// reads again.
#pragma once

#include <functional>

#include "ir/graph.h"

namespace retrograd::inline v0::ir {

/// An elementwise op, a view or a constant: the same operands give the same bits again.
bool is_cheap(const Node& node);

class Recompute {
 public:
  static constexpr int kMostNodes = 6;
  static constexpr size_t kMostSources = 8;

  /// `saved`: values of the forward. `may_go`: whether only backwards hold the memory of saved value number i.
  Recompute(const Graph& forward, std::vector<ValueId> saved, const std::function<bool(size_t)>& may_go);
  Recompute() = default;

  bool any() const;
  /// Whether saved value number i is recomputed.
  bool goes(size_t i) const { return i < sources_.size() && !sources_[i].empty(); }
  /// The numbers of the saved values that it is recomputed from.
  std::span<const int32_t> sources(size_t i) const { return sources_[i]; }

  /// Changes the outputs of the forward, where outputs[i] gives saved value number i: a recomputed one is replaced by
  /// one of its sources.
  void replace_outputs(Graph& forward, std::span<const int32_t> outputs) const;
  /// `saved`: for each input of a backward, the number of the saved value of `forward` that it is, or -1. The sources
  /// are among them.
  void compute_anew(Graph& backward, const Graph& forward, std::span<const int32_t> saved) const;

 private:
  std::vector<ValueId> saved_;                 // of the forward
  std::vector<std::vector<int32_t>> sources_;  // of each saved value; empty: it is saved
};

}  // namespace retrograd::ir
