// VersionNotes: detects writes of user code to tensors that a recorded function saved.
//
// Writes of the function itself are seen while it is recorded. User code called in a run may write to any tensor that
// is an input. So before user code, a node `note_versions` notes the versions of the inputs read since the previous
// user code: the records made since then have saved the inputs in this state. If one of these inputs is unpacked
// after user code has run, a node `check_version` compares the versions. The noted versions travel as an opaque
// value, from the forward to the backward if needed. The intervals between calls of user code are **epochs**; the
// sequence number of a record tells its epoch.
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tracer/function/recorded_function.h"

namespace retrograd::inline v0 {

class FunctionRecorder;

class VersionNotes {
 public:
  explicit VersionNotes(FunctionRecorder& of) : of_(of) {}

  /// To be called for a recorded call: notes the inputs that it may save.
  void note_call(const Call& call);
  /// To be called before user code: all epochs so far are followed by code.
  void code_follows();
  /// Notes the versions of the inputs read since the last user code.
  void note_read();
  /// Notes the versions of the inputs that a backward of the function may unpack.
  void note_walk(const Walk& walk);
  /// Compares the version of the tensor saved in the slot, if user code has run since.
  void check(Record& record, const Slot& slot);

  template <class F>
  void each_held(const F& f) const {
    for (const Epoch& e : epochs_) f(e.versions.get());
  }

 private:
  struct Epoch {
    uint64_t end;                                        // records of the epoch have lower numbers
    bool code_follows;                                   // the epoch is over
    std::unordered_map<const Storage*, size_t> numbers;  // index of the memory in
    Tensor versions;                                     // the opaque value
  };
  using Inputs = std::vector<std::pair<const Storage*, ir::ValueId>>;
  void note(Inputs inputs, bool code_follows);
  const Epoch* find(const Record& record, const Storage& memory) const;

  FunctionRecorder& of_;
  std::vector<Epoch> epochs_;                           // in order
  std::unordered_set<const Storage*> read_since_code_;  // by calls that may have saved it
};

}  // namespace retrograd
