// SavedValues: the values of a recorded forward that its backwards use, in the order in which they are saved.
//
// The first backward, for all results, decides: every value that a later one saves has been saved by the first. A
// value that is in the memory of a written input after the run is read there (its location); the previous value of
// such an input is kept in separate memory.
#pragma once

#include <unordered_map>
#include <vector>

#include "tracer/function/recorded_function.h"

namespace retrograd::inline v0 {

class FunctionRecorder;

class SavedValues {
 public:
  explicit SavedValues(FunctionRecorder& of) : of_(of) {}

  /// The number of the saved value that `tensor` holds, used by the rule of `user`; null: by no rule.
  int32_t index_of(const Tensor& tensor, const Record* user);
  /// In the order of their numbers.
  std::vector<ir::ValueId> values() const;
  /// Makes them outputs. No further values are saved.
  void finish(RecordedFunction& out);
  bool is_finished() const { return is_finished_; }

 private:
  FunctionRecorder& of_;
  std::unordered_map<ir::ValueId, int32_t> numbers_;
  std::vector<Location> locations_;
  bool is_finished_ = false;
};

}  // namespace retrograd
