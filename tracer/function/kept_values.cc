// See tracer/function/kept_values.h.
#include "tracer/function/kept_values.h"

#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "engine/region.h"

namespace retrograd::inline v0 {
namespace {

// Counts the known references.
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
  /// Inspects all records reachable from those inspected so far.
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
      if (slot.packed()->structure)  // of a traceable pair
        for (const Tensor* part : payload_tensors(*slot.packed())) hold(*part);
      else if (const Tensor* payload = std::any_cast<Tensor>(&slot.packed()->payload))
        hold(*payload);
      if (const Region* region = slot.packed()->hooks->region(); region && regions_.insert(region).second)
        for (size_t k = 0; k < region->kept_count(); ++k) hold(region->kept_slot(k).value());
    }
    for (int i = 0; i < record.operands; ++i) hold(record.edge(i));
    if (!record.hooks) return;
    for (const auto& [output, box] : record.hooks->retained) hold(box->grad);
  }

  std::unordered_map<const TensorImpl*, size_t> counts_;
  std::unordered_set<const Record*> seen_;
  std::unordered_set<const Region*> regions_;
  std::vector<Record*> records_;
};

// A cell held outside the recording; null if there is none.
const TensorImpl* kept_value(const FunctionRecorder& recorder, const FunctionResults& results,
                             const RecordedFunction& recorded, const RecordedTape* tape) {
  const std::vector<RefPtr<TensorImpl>>& cells = recorder.cells();
  Holders known;
  for (const RefPtr<TensorImpl>& cell : cells) {
    known.hold(cell.get());
    known.look_into(*cell);
  }
  recorder.each_held([&](const TensorImpl* cell) { known.hold(cell); });
  for (const ResultBinding& r : results) {
    known.hold(r.recorded);
    known.hold(r.edge);
  }
  if (tape)
    for (const Tensor& leaf : tape->leaves()) known.hold(leaf);
  for (const RefPtr<TensorImpl>& outside : recorded.outside->held()) known.hold(outside.get());
  known.look_into_records();
  for (const RefPtr<TensorImpl>& cell : cells)
    if (cell->ref_count() > known.count(*cell)) return cell.get();
  return nullptr;
}

}  // namespace

void check_kept(FunctionRecorder& recorder, const FunctionResults& results, const RecordedFunction& recorded,
                const RecordedTape* tape) {
  if (recorder.host().calls_code())
    if (const TensorImpl* const kept = kept_value(recorder, results, recorded, tape))
      throw NotRecordable(fmt::format("user code keeps {} of the function", to_string(kept->type())));
  recorder.forget_cells();
}

}  // namespace retrograd
