// See tracer/function/open_backwards.h.
#include "tracer/function/open_backwards.h"

#include <algorithm>

#include "ops/creation.h"
#include "tracer/function/function_recorder.h"
#include "tracer/function/opaque_value.h"

namespace retrograd::inline v0 {
namespace {

// What a recorded backward reaches: records of the recorded tape, by their numbers; leaves from outside; leaves that
// are arguments of a run.
struct RecordedReach {
  std::vector<uint64_t> records;          // ascending
  std::vector<const TensorImpl*> leaves;  // as recorded
};

class ReachOfRun final : public Reach {
 public:
  ReachOfRun(std::shared_ptr<const RecordedReach> recorded, std::vector<const TensorImpl*> arguments,
             bool is_part)
      : recorded_(std::move(recorded)), arguments_(std::move(arguments)), current_(*this, is_part) {}

  bool reaches(uint64_t seq) override { return std::ranges::binary_search(recorded_->records, seq); }
  bool reaches(const TensorImpl* leaf) override {
    return std::ranges::count(arguments_, leaf) || std::ranges::count(recorded_->leaves, leaf);
  }
  CurrentBackward& current() { return current_; }

 private:
  const std::shared_ptr<const RecordedReach> recorded_;
  const std::vector<const TensorImpl*> arguments_;  // that are leaves
  CurrentBackward current_;
};

// Its operands: an arbitrary value, since a node needs one; then the arguments.
class BeginBackwardCode final : public HostCode {
 public:
  BeginBackwardCode(std::shared_ptr<const RecordedReach> reach, bool is_part)
      : reach_(std::move(reach)), is_part_(is_part) {
    types = {opaque_value_type()};
  }
  void run(std::span<TensorImpl* const> operands, Tensor* results) override {
    std::vector<const TensorImpl*> arguments(operands.begin() + 1, operands.end());
    results[0] = make_opaque_value(std::make_shared<ReachOfRun>(reach_, std::move(arguments), is_part_));
  }

 private:
  const std::shared_ptr<const RecordedReach> reach_;
  const bool is_part_;
};

class EndBackwardCode final : public HostCode {
 public:
  EndBackwardCode() { types = {opaque_value_type()}; }
  void run(std::span<TensorImpl* const> operands, Tensor* results) override {
    results[0] = make_opaque_value({});
    static_cast<ReachOfRun*>(opaque_content(*operands[0]).get())->current().end();
  }
};

}  // namespace

void OpenBackwards::begin() {
  for (Open& b : open_)
    if (!b.begun.defined()) begin(b);
}

void OpenBackwards::begin(Open& open) {
  const Emitter::Scope scope(of_);
  auto reach = std::make_shared<RecordedReach>();
  std::vector<ir::ValueId> operands{of_.value_of(open.value.defined() ? open.value : zeros({0}))};
  for (const Walk::Item& item : open.walk->order())
    if (open.walk->reaches(item.record->seq)) reach->records.push_back(item.record->seq);
  std::ranges::sort(reach->records);
  for (const Walk::Leaf& leaf : open.walk->leaves()) {
    if (of_.forward() || !open.walk->reaches(leaf.leaf)) continue;
    if (const auto of_run = of_.grads().leaf_of_run(*leaf.leaf); of_run.argument != ir::kNoValue)
      operands.push_back(of_run.argument);
    // Also a stand-in: hooks that the function itself registered wait for it.
    reach->leaves.push_back(of_.hold(*leaf.leaf));
  }
  const bool is_part = of_.forward() != nullptr;
  auto code = RefPtr<HostCode>::adopt(new BeginBackwardCode(std::move(reach), is_part));
  open.begun = of_.memory().computed(opaque_value_type(),
                                     of_.host().emit(ops::begin_backward, operands, std::move(code)));
  if (of_.forward()) of_.host().versions().note_walk(*open.walk);
}

Tensors OpenBackwards::within(const BackwardRequest& request, Walk& walk,
                              const std::function<Tensors()>& run) {
  struct Scope {
    explicit Scope(std::vector<Open>& all, Open open) : all(all) { all.push_back(std::move(open)); }
    ~Scope() { all.pop_back(); }
    std::vector<Open>& all;
  };
  const auto given = std::ranges::find_if(request.cotangents, &Tensor::defined);
  const Scope scope(open_, {&walk, given == request.cotangents.end() ? Tensor() : *given, {}});
  Tensors gradients = run();
  if (const Tensor begun = open_.back().begun; begun.defined()) {
    of_.host().before_code();
    const ir::ValueId operands[] = {of_.value_of(begun)};
    of_.host().emit(ops::end_backward, operands, RefPtr<HostCode>::adopt(new EndBackwardCode));
  }
  return gradients;
}

}  // namespace retrograd
