// FunctionOutputs: the outputs of a recorded graph. An output that must have memory of its own is copied if it shares
// memory with an input, another output or user code.
#pragma once

#include <unordered_set>
#include <vector>

#include "ir/graph.h"

namespace retrograd::inline v0 {

class FunctionRecorder;
struct Root;

class FunctionOutputs {
 public:
  explicit FunctionOutputs(FunctionRecorder& of) : of_(of) {}

  /// To be called after the function has returned: finds the values that have no memory of their own.
  void begin();
  /// Returns the number of the output. `must_own`: it has memory of its own.
  int32_t add(ir::ValueId value, bool must_own);
  /// One output for everything that shows this memory.
  int32_t add(Root& root);
  std::vector<ir::ValueId> take() { return std::move(values_); }

 private:
  FunctionRecorder& of_;
  std::vector<ir::ValueId> values_;
  std::unordered_set<ir::ValueId> known_;
  std::vector<bool> borrowed_;
};

}  // namespace retrograd
