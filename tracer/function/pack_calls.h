// PackCalls: saved-tensor hooks in a recorded function.
//
// An opaque pair is called in each run: by the node `pack` where a record saves, and by `unpack` where a rule first
// uses the value. The packed value has a separate slot, which travels as an opaque value from one node to the other,
// from the forward to the backward if needed. A run uses the default pair of its call; a pair that the function opens
// itself is always the same.
// A traceable pair is called while the function is recorded, for the values that its filter lets through. Whether a
// value is a result is known when the backward of the function is recorded: then it is read, and the packed one goes.
// For logs and checks a recording may call its functions in each run, too, as those of an opaque pair (PairForm). The
// operations stay there: where nothing reads their results, `dce` drops them.
#pragma once

#include <unordered_map>
#include <unordered_set>

#include "tracer/function/recorded_function.h"

namespace retrograd::inline v0 {

class FunctionRecorder;

/// What a recording has of traceable pairs: their operations; nodes that call their functions; or both, and a node that
/// compares what an unpack gave either way (CompileOptions::check_pairs).
enum class PairForm : uint8_t { inlined, called, checked };

class PackCalls {
 public:
  explicit PackCalls(FunctionRecorder& of) : of_(of) {}

  std::vector<RecordedFunction::KeptArgument> take_kept_arguments() { return std::move(kept_arguments_); }
  /// The results of the function, whose recording is complete.
  void note_results(const Tensors& results);
  void emit_pack(const Call& call);
  void emit_unpack(const Call& call, Tensor* results);
  /// Whether a traceable pair has packed a value.
  bool has_traceable() const { return has_traceable_; }
  template <class F>
  void each_held(const F& f) const {
    for (const auto& [slot, packing] : packed_) f(packing.called.get()), f(packing.unpacked.get());
  }

 private:
  Tensor region_input(Region& region, size_t i);
  // A packed value.
  struct Packing {
    ir::ValueId value;
    RefPtr<Storage> memory;
    uint32_t version;
    Tensor called;                // what a node `pack` gave; undefined: there is none
    RefPtr<TensorImpl> unpacked;  // with PackFilter::donated: the value
  };
  const Packing* find(const Slot& slot) const;
  bool is_let_through(SavedTensorHooks& pair, const Storage* memory);
  TensorImpl* held_anyway(const Slot& slot, const Packing* from) const;
  bool is_unchanged(const Storage& memory, uint32_t version) const;
  void unpack_value(const Call& call, Slot& slot, const Packing* from, Tensor* results);
  void unpack_recorded(const Call& call, Slot& slot, Tensor* results);
  Tensor unpack_called(const Call& call, const Slot& slot, const Packing& from);
  void check_unpacked(const Call& call, const Slot& slot, const Tensor& inlined, const Tensor& called);
  void note_saved(const Storage& memory);

  FunctionRecorder& of_;
  const RefPtr<SavedTensorHooks> pair_ = default_saved_tensor_hooks();  // each run has its own in its place
  std::unordered_map<const Slot*, Packing> packed_;
  bool has_traceable_ = false;
  std::vector<RecordedFunction::KeptArgument> kept_arguments_;
  std::unordered_set<const Storage*> results_;  // memory of the results, from note_results() on
  std::unordered_set<int32_t> read_outside_;    // inputs listed in BackwardReads::saved_outside
};

}  // namespace retrograd
