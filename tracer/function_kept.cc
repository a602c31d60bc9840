// Values of a recording that code of the user's keeps: see tracer/function_capture.h.
//
// What a function makes while it is recorded are names in a graph, without data. Code that a run calls (a hook that looks at a tensor of the
// function, or registers a hook on it) may have kept some of them: as a capture of its closure, say. In a run it would find the names and not the
// values. Such a function is run as it is. Which cells others hold shows in their counts of references: those that are left when all that
// the recording itself holds is taken off. Where a holder is not known here, a function is run as it is though it could be recorded.
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "tracer/function_capture.h"

namespace retrograd {
namespace {

// Counts the references that are known.
class Holders {
 public:
  void hold(const TensorImpl* cell) {
    if (cell) ++counts_[cell];
  }
  void hold(const Tensor& t) { hold(t.get()); }
  size_t count(const TensorImpl& cell) const {
    const auto it = counts_.find(&cell);
    return it == counts_.end() ? 0 : it->second;
  }

  void look_into(const TensorImpl& cell) {
    hold(cell.base.get());
    look_at(cell.grad_fn.get());
    if (!cell.meta) return;
    hold(cell.meta->grad);
    hold(cell.meta->stands_for.get());
    for (const Tangent& t : cell.meta->tangents) hold(t.value);
  }
  void hold(const Edge& edge) {
    hold(edge.leaf());
    look_at(edge.record());
  }
  /// All records that are reached from those that were looked at.
  void look_into_records() {
    for (size_t k = 0; k < records_.size(); ++k) look_into(*records_[k]);
  }

 private:
  void look_at(Record* record) {
    if (record && seen_.insert(record).second) records_.push_back(record);
  }
  void look_into(Record& record) {
    for (int i = 0; i < record.slots; ++i) {
      const Slot& slot = record.slot(i);
      hold(slot.value());
      if (!slot.packed()) continue;
      if (const Tensor* payload = std::any_cast<Tensor>(&slot.packed()->payload)) hold(*payload);
    }
    for (int i = 0; i < record.operands; ++i) hold(record.edge(i));
    if (!record.hooks) return;
    for (const auto& [output, box] : record.hooks->retained) hold(box->grad);
  }

  std::unordered_map<const TensorImpl*, size_t> counts_;
  std::unordered_set<const Record*> seen_;
  std::vector<Record*> records_;
};

}  // namespace

// A cell that others than the recording hold; null when there is none.
const TensorImpl* FunctionCapture::kept_value() const {
  const std::vector<RefPtr<TensorImpl>>& cells = recorder_->cells();
  Holders known;
  for (const RefPtr<TensorImpl>& cell : cells) {
    known.hold(cell.get());
    known.look_into(*cell);
  }
  recorder_->each_held([&](const TensorImpl* cell) { known.hold(cell); });
  for (const End& e : ends_) {
    known.hold(e.recorded);
    known.hold(e.edge);
  }
  for (const Tensor& leaf : leaves_) known.hold(leaf);
  for (const RecordedFunction::Grad& g : recorded_.grads) known.hold(g.leaf.get());
  for (const RecordedFunction::Input& input : recorded_.inputs) known.hold(input.leaf.get());
  known.look_into_records();
  for (const RefPtr<TensorImpl>& cell : cells)
    if (cell->ref_count() > known.count(*cell)) return cell.get();
  return nullptr;
}

void FunctionCapture::check_kept() const {
  const TensorImpl* const kept = recorder_->calls_code() ? kept_value() : nullptr;
  if (kept)
    throw NotRecordable(fmt::format("code of the user's keeps {} of the function", to_string(kept->type())));
  recorder_->forget_cells();
}

}  // namespace retrograd
