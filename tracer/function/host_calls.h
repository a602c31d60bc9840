// HostCalls: nodes of a recorded function that run code on the host (engine/host_code.h), and the nodes inserted
// before them.
//
// Code that is not recorded becomes nodes: packs and unpacks of opaque pairs (pack_calls.h), opaque functions
// (user_functions.h) and hooks. Before each of them the recording inserts nodes that store the values written so far
// to outside memory (publish), so that the code finds the same values as in an eager run, also after it throws; nodes
// that note versions (version_notes.h); and, in a backward, the node `begin_backward` for hooks (open_backwards.h).
//
// A traceable hook or pair is called while the function is recorded, and its operations are part of the graph. The
// node `hook` calls an opaque hook in each run. The result of the hook may have any layout: its value has no layout
// here, like the values of a captured backward.
// Start reading at before_code().
#pragma once

#include <vector>

#include "tracer/function/open_backwards.h"
#include "tracer/function/pack_calls.h"
#include "tracer/function/version_notes.h"

namespace retrograd::inline v0 {

struct Root;

class HostCalls {
 public:
  explicit HostCalls(FunctionRecorder& of) : of_(of) {}

  /// Appends a node that runs `code`. Its results are numbered from the returned value.
  ir::ValueId emit(const OpInfo& op, std::span<const ir::ValueId> operands, RefPtr<HostCode> code,
                   SourceLocation where = {});
  void emit_hook(const Call& call, Tensor* results);
  /// To be called before user code: stores the values written so far to outside memory, and notes the versions at
  /// that point.
  void before_code();
  /// The same before a pair is called. There is no guard against what a pure pair cannot do; it would cut a device's
  /// graphs of launches (CUDA graphs).
  void before_pair(const SavedTensorHooks& pair);
  /// Whether a run calls user code, in the forward or in a backward that has been recorded.
  bool calls_code() const { return calls_code_; }

  PackCalls& packs() { return packs_; }
  OpenBackwards& backwards() { return backwards_; }
  VersionNotes& versions() { return versions_; }
  template <class F>
  void each_held(const F& f) const {
    packs_.each_held(f);
    versions_.each_held(f);
  }

 private:
  void note_code();
  void publish();
  void publish(Root& root);

  FunctionRecorder& of_;
  bool calls_code_ = false;
  PackCalls packs_{of_};
  OpenBackwards backwards_{of_};
  VersionNotes versions_{of_};
};

}  // namespace retrograd
