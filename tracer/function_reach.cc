// Backwards in a recorded function, as hooks find them in a run: see tracer/function_recorder.h.
//
// A plan is not a backward, but what its hooks call may ask for the one that runs: multi-grad hooks wait for what it reaches, callbacks for its
// end. So where code of the user's may run in a recorded backward, that stands between two nodes: `begin_backward` makes a CurrentBackward,
// which knows what the recorded one has reached, and hands it to `end_backward` as a parcel. That calls the callbacks. When a run ends with
// an error, the CurrentBackward goes with the parcel.
// The backward of a differentiable function is part of the one that runs outside: it has no end of its own.
#include <algorithm>

#include "ops/creation.h"
#include "ops/shape_ops.h"
#include "tracer/function_recorder.h"

namespace retrograd {
namespace {

// What a recorded backward reaches: records of the recorded tape, by their numbers; leaves from outside; leaves that are arguments of a run.
struct RecordedReach {
  std::vector<uint64_t> records;  // ascending
  std::vector<RefPtr<TensorImpl>> leaves;
};

class ReachOfRun final : public Reach {
 public:
  ReachOfRun(std::shared_ptr<const RecordedReach> recorded, std::vector<const TensorImpl*> arguments,
             bool is_part)
      : recorded_(std::move(recorded)), arguments_(std::move(arguments)), current_(*this, is_part) {}

  bool reaches(uint64_t seq) override { return std::ranges::binary_search(recorded_->records, seq); }
  bool reaches(const TensorImpl* leaf) override {
    return std::ranges::count(arguments_, leaf) ||
           std::ranges::count(recorded_->leaves, leaf, &RefPtr<TensorImpl>::get);
  }
  CurrentBackward& current() { return current_; }

 private:
  const std::shared_ptr<const RecordedReach> recorded_;
  const std::vector<const TensorImpl*> arguments_;  // that are leaves
  CurrentBackward current_;
};

// Its operands: any value, since a node has one; then the arguments.
class BeginBackwardCode final : public HostCode {
 public:
  BeginBackwardCode(std::shared_ptr<const RecordedReach> reach, bool is_part)
      : reach_(std::move(reach)), is_part_(is_part) {
    types = {parcel_type()};
  }
  void run(std::span<TensorImpl* const> operands, Tensor* results) override {
    std::vector<const TensorImpl*> arguments(operands.begin() + 1, operands.end());
    results[0] = make_parcel(std::make_shared<ReachOfRun>(reach_, std::move(arguments), is_part_));
  }

 private:
  const std::shared_ptr<const RecordedReach> reach_;
  const bool is_part_;
};

class EndBackwardCode final : public HostCode {
 public:
  EndBackwardCode() { types = {parcel_type()}; }
  void run(std::span<TensorImpl* const> operands, Tensor* results) override {
    results[0] = make_parcel({});
    static_cast<ReachOfRun*>(open_parcel(*operands[0]).get())->current().end();
  }
};

bool has_opaque(const HookList& hooks) {
  return std::ranges::any_of(hooks.all(),
                             [](const RefPtr<Hook>& h) { return h->is_live() && !h->traceable; });
}

bool has_opaque_hooks(const Record& record) {
  const RecordHooks* hooks = record.hooks.get();
  return hooks && (has_opaque(hooks->tensor) || has_opaque(hooks->pre) || has_opaque(hooks->post));
}

}  // namespace

// Whether code of the user's may run in a backward along this walk, but for what is added while it is recorded.
bool FunctionRecorder::may_call_code(const Walk& walk) const {
  const auto record_calls = [&](const Walk::Item& item) {
    return has_opaque_hooks(*item.record) || item.record->was_packed || opaque_call(*item.record);
  };
  const auto leaf_calls = [](const Walk::Leaf& leaf) {
    return !all_hooks(*leaf.leaf, [](const RefPtr<Hook>& h) { return h->traceable; });
  };
  return std::ranges::any_of(walk.order(), record_calls) ||
         (!forward_ && std::ranges::any_of(walk.leaves(), leaf_calls));
}

Tensor FunctionRecorder::begin_backward(Walk& walk, const Tensor& any_value) {
  if (!may_call_code(walk)) return {};
  auto reach = std::make_shared<RecordedReach>();
  const Emitter::Scope scope(*this);
  std::vector<ir::ValueId> operands{value_of(any_value.defined() ? any_value : zeros({0}))};
  for (const Walk::Item& item : walk.order())
    if (walk.reaches(item.record->seq)) reach->records.push_back(item.record->seq);
  std::ranges::sort(reach->records);
  for (const Walk::Leaf& leaf : walk.leaves()) {
    if (forward_ || !walk.reaches(leaf.leaf)) continue;
    if (const LeafOfRun of_run = leaf_of_run(*leaf.leaf); of_run.argument != ir::kNoValue)
      operands.push_back(of_run.argument);
    else
      reach->leaves.push_back(of_run.outside);
  }
  const bool is_part = forward_ != nullptr;
  const ir::ValueId parcel =
      emit_host(host::begin_backward, operands,
                RefPtr<HostCode>::adopt(new BeginBackwardCode(std::move(reach), is_part)));
  if (forward_) note_versions(walk);
  return computed(parcel_type(), parcel);
}

void FunctionRecorder::end_backward(const Tensor& begun) {
  if (!begun.defined()) return;
  before_code();
  const ir::ValueId operands[] = {value_of(begun)};
  emit_host(host::end_backward, operands, RefPtr<HostCode>::adopt(new EndBackwardCode));
}

Tensors FunctionRecorder::own_backward(const BackwardRequest& request, Walk& walk) {
  if (forward_) return GraphEmitter::own_backward(request, walk);
  const Tensor begun = begin_backward(walk, request.cotangents[0]);
  Tensors gradients = GraphEmitter::own_backward(request, walk);
  end_backward(begun);
  for (Tensor& g : gradients)  // what opaque code gave may lie in any way
    if (g.defined() && !g.impl().has_layout()) g = present_value(contiguous(g).impl());
  return gradients;
}

Tensors FunctionRecorder::backward_of_function(const BackwardRequest& request, Walk& walk) {
  const auto given = std::ranges::find_if(request.cotangents, &Tensor::defined);
  const Tensor begun = begin_backward(walk, given == request.cotangents.end() ? Tensor() : *given);
  Tensors gradients = record_backward(request, walk, *this);
  end_backward(begun);
  return gradients;
}

}  // namespace retrograd
