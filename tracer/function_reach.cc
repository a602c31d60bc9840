// Backwards in a recorded function, as hooks find them in a run: see tracer/function_recorder.h.
//
// A plan is not a backward, but what its hooks call may ask for the one that runs: multi-grad hooks wait for what it reaches, callbacks for its
// end. So before the first such code in a recorded backward a node `begin_backward` makes a CurrentBackward, which knows what the recorded one
// has reached, and hands it as a parcel to `end_backward` at its end. That calls the callbacks. When a run ends with an error, the
// CurrentBackward goes with the parcel.
// The backward of a differentiable function is part of the one that runs outside: it has no end of its own.
#include <algorithm>

#include "ops/creation.h"
#include "ops/shape_ops.h"
#include "tracer/function_recorder.h"

namespace retrograd {
namespace {

// What a recorded backward reaches: records of the recorded tape, by their numbers; leaves from outside; leaves that are arguments of a run.
struct RecordedReach {
  std::vector<uint64_t> records;           // ascending
  std::vector<RefPtr<TensorImpl>> leaves;  // as recorded
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

}  // namespace

// Before the first code of the user's in them: where none comes, nothing stands in the graph, and a device's launches are cut only there.
void FunctionRecorder::begin_backwards() {
  for (OpenBackward& b : open_backwards_)
    if (!b.begun.defined()) begin_backward(b);
}

void FunctionRecorder::begin_backward(OpenBackward& open) {
  const Emitter::Scope scope(*this);
  auto reach = std::make_shared<RecordedReach>();
  std::vector<ir::ValueId> operands{value_of(open.value.defined() ? open.value : zeros({0}))};
  for (const Walk::Item& item : open.walk->order())
    if (open.walk->reaches(item.record->seq)) reach->records.push_back(item.record->seq);
  std::ranges::sort(reach->records);
  for (const Walk::Leaf& leaf : open.walk->leaves()) {
    if (forward_ || !open.walk->reaches(leaf.leaf)) continue;
    if (const LeafOfRun of_run = leaf_of_run(*leaf.leaf); of_run.argument != ir::kNoValue)
      operands.push_back(of_run.argument);
    reach->leaves.emplace_back(
        leaf.leaf);  // also a stand-in: what the function itself has registered waits for that
    held_by_code_.push_back(leaf.leaf);
  }
  const bool is_part = forward_ != nullptr;
  open.begun = computed(parcel_type(),
                        emit_host(host::begin_backward, operands,
                                  RefPtr<HostCode>::adopt(new BeginBackwardCode(std::move(reach), is_part))));
  if (forward_) note_versions(*open.walk);
}

// Runs a backward that is part of the recording.
template <class Run>
Tensors FunctionRecorder::within_backward(const BackwardRequest& request, Walk& walk, const Run& run) {
  struct Open {
    explicit Open(std::vector<OpenBackward>& all, OpenBackward open) : all(all) {
      all.push_back(std::move(open));
    }
    ~Open() { all.pop_back(); }
    std::vector<OpenBackward>& all;
  };
  const auto given = std::ranges::find_if(request.cotangents, &Tensor::defined);
  const Open open(open_backwards_, {&walk, given == request.cotangents.end() ? Tensor() : *given, {}});
  Tensors gradients = run();
  if (const Tensor begun = open_backwards_.back().begun; begun.defined()) {
    before_code();
    const ir::ValueId operands[] = {value_of(begun)};
    emit_host(host::end_backward, operands, RefPtr<HostCode>::adopt(new EndBackwardCode));
  }
  return gradients;
}

Tensors FunctionRecorder::own_backward(const BackwardRequest& request, Walk& walk) {
  if (forward_) return GraphEmitter::own_backward(request, walk);
  Tensors gradients =
      within_backward(request, walk, [&] { return GraphEmitter::own_backward(request, walk); });
  for (Tensor& g : gradients)  // what opaque code gave may lie in any way
    if (g.defined() && !g.impl().has_layout()) g = present_value(contiguous(g).impl());
  return gradients;
}

Tensors FunctionRecorder::backward_of_function(const BackwardRequest& request, Walk& walk) {
  return within_backward(request, walk, [&] { return record_backward(request, walk, *this); });
}

}  // namespace retrograd
