// NodeCopies: nodes of a graph that are computed once more, in a graph that is being rewritten: the same or another one.
// Each value is copied at most once, before its first user.
#pragma once

#include <functional>
#include <unordered_map>

#include "ir/rewriter.h"

namespace retrograd::inline v0::ir {

/// Of each value, the node that gives it; -1: an input.
std::vector<int32_t> producers_of(const Graph& graph);

class NodeCopies {
 public:
  /// `given`: the new value for one of `from` that need not be copied; kNoValue for others.
  NodeCopies(const Graph& from, Rewriter& to, std::function<ValueId(ValueId)> given)
      : from_(from), to_(to), given_(std::move(given)), producer_(producers_of(from)) {}

  /// The copy of a value that is not given, for a node of the graph that is rewritten.
  ValueId of(ValueId value, const Node& user);

 private:
  ValueId there(ValueId value) const;
  std::vector<int32_t> missing_for(ValueId value) const;

  const Graph& from_;
  Rewriter& to_;
  const std::function<ValueId(ValueId)> given_;
  const std::vector<int32_t> producer_;
  std::unordered_map<ValueId, ValueId> copies_;
};

}  // namespace retrograd::ir
