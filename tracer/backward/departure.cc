// See tracer/backward/departure.h.
#include "tracer/backward/departure.h"

#include <algorithm>
#include <unordered_set>

namespace retrograd::inline v0 {
namespace {

// The hooks that the graph calls: those bound to its inputs. Traceable hooks are recorded, and distinguished by the
// annotations.
class KnownHooks {
 public:
  explicit KnownHooks(const PlanRun& run) {
    for (const ir::Binding& b : run.bindings()) bound_.insert(b.hook.get());
  }
  bool has_new(const HookList& list) const {
    return std::ranges::any_of(list.all(), [&](const RefPtr<Hook>& h) {
      return h->is_live() && !h->traceable && !bound_.contains(h.get());
    });
  }
  bool has_new(const Record& r) const {
    return r.hooks && (has_new(r.hooks->tensor) || has_new(r.hooks->pre) || has_new(r.hooks->post));
  }
  bool has_new(const TensorImpl& leaf) const {
    const AutogradMeta* m = leaf.meta.get();
    return m && (has_new(m->tensor_hooks) || has_new(m->pre_hooks) || has_new(m->post_hooks) ||
                 has_new(m->post_accumulate_hooks));
  }

 private:
  std::unordered_set<const Hook*> bound_;
};

}  // namespace

uint32_t Departure::annotations_changed(const PlanRun& run) {
  const KnownHooks known(run);
  const auto record_changed = [&](uint32_t place) {
    const Record& r = *reached_.records[place];
    return annotations_of(r) != trail_.annotations(place) || known.has_new(r);
  };
  const auto leaf_changed = [&](uint32_t index) {
    const TensorImpl& leaf = *reached_.leaves[index];
    return annotations_of(leaf) != trail_.leaf_annotations(index) || known.has_new(leaf);
  };
  for (size_t i = 0; i < std::min(log_.events.size(), leave_at_); ++i) {
    const DriveLog::Event& e = log_.events[i];
    if (e.node < run.nodes_begun()) continue;
    const bool changed = e.kind == DriveLog::Kind::record ? record_changed(e.index)
                         : e.kind == DriveLog::Kind::gave
                             ? e.count && record_changed(e.index)  // its post-hooks
                             : e.kind == DriveLog::Kind::leaf && leaf_changed(e.index);
    if (changed) leave_at_ = i;
  }
  return leave_at_ == kStay ? kGoOn : log_.events[leave_at_].node;
}

void Departure::gradient_missing(uint32_t node, Tensors given) {
  const auto is_end = [node](const DriveLog::Event& e) {
    return e.kind == DriveLog::Kind::gave && e.node == node + 1;
  };
  leave_at_ = static_cast<size_t>(std::ranges::find_if(log_.events, is_end) - log_.events.begin());
  RG_ASSERT(leave_at_ < log_.events.size());
  given_ = std::move(given);
}

// The gradients that have arrived and are not yet consumed, by number; those of inputs are stored in `state`
// directly.
std::vector<ir::ValueId> Departure::arrived_values(const PlanRun& run, size_t count,
                                                   BackwardState& state) const {
  std::vector<ir::ValueId> arrived(count, ir::kNoValue);
  for (size_t i = 0; i < leave_at_; ++i) {
    const DriveLog::Event& e = log_.events[i];
    if (e.kind == DriveLog::Kind::arrived) arrived[e.index] = e.value;
    if (e.kind == DriveLog::Kind::captured) state.captured[e.index] = run.value(e.value);
    if (e.kind == DriveLog::Kind::record) std::fill_n(arrived.begin() + e.value, e.count, ir::kNoValue);
    if (e.kind == DriveLog::Kind::leaf) arrived[static_cast<size_t>(e.value)] = ir::kNoValue;
  }
  return arrived;
}

void Departure::set_place(const Walk& walk, BackwardState& state) const {
  const DriveLog::Event& at = log_.events[leave_at_];
  const auto& leaves = walk.leaves();
  if (at.kind == DriveLog::Kind::leaf) {
    state.next_leaf = at.index;
    state.next_record = static_cast<size_t>(leaves[at.index].after + 1);
    return;
  }
  state.next_record = at.index;
  while (state.next_leaf < leaves.size() && leaves[state.next_leaf].after < static_cast<int32_t>(at.index))
    ++state.next_leaf;
  state.rule_is_done = at.kind == DriveLog::Kind::gave;
}

// The rule of the next record is done: sets its gradients, and the results of the rule.
void Departure::set_given(const PlanRun& run, const Walk::Item& item, BackwardState& state) {
  const auto list = log_.lists.begin() + log_.events[leave_at_].value;
  for (int i = 0; i < item.record->outputs; ++i)
    state.grads[item.first_grad + static_cast<uint32_t>(i)] = run.value(list[i]);
  state.given = std::move(given_);
  if (!state.given.empty()) return;
  for (int i = 0; i < item.record->operands; ++i)
    state.given.push_back(run.value(list[item.record->outputs + i]));
}

Tensors Departure::resume(PlanRun& run) {
  Walk walk = request_.walk();
  BackwardState state;
  state.grads.resize(walk.grad_count());
  state.captured.resize(request_.input_edges.size());
  const std::vector<ir::ValueId> arrived = arrived_values(run, walk.grad_count(), state);
  for (size_t g = 0; g < arrived.size(); ++g) state.grads[g] = run.value(arrived[g]);
  set_place(walk, state);
  if (state.rule_is_done) set_given(run, walk.order()[state.next_record], state);
  run.empty_registers();
  return resume_backward(request_, walk, std::move(state));
}

}  // namespace retrograd
