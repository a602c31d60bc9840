// Leaving a captured graph: code of the user's that ran may have changed what is to come. look_ahead() finds the first record or leaf still to
// come that it concerns; leave() turns registers back into the driver's state there (BackwardState), and the driver goes on eagerly.
// Where a gradient is at each point is known from the log of the driver that was kept at capture (DriveLog).
#include <algorithm>
#include <unordered_set>

#include "engine/runner.h"
#include "ops/shape_ops.h"
#include "tracer/plan_run.h"

namespace retrograd {

// Something was annotated while a step ran: does it concern a record or leaf that is still to come?
void Plan::Run::look_ahead() {
  seen_changes = annotation_changes;
  if (function_run && function_run->hooks_changed) function_run->hooks_changed(plan.steps_[next].node + 1);
  const auto& events = plan.log_.events;
  std::unordered_set<const Hook*> bound;
  for (const ir::Binding& b : bindings) bound.insert(b.hook.get());
  const auto has_new = [&](const HookList& list) {  // traceable ones are told apart by the annotations
    return std::ranges::any_of(list.all(), [&](const RefPtr<Hook>& h) {
      return h->is_live() && !h->traceable && !bound.contains(h.get());
    });
  };
  const auto record_changed = [&](const Record& r, uint32_t place) {
    return annotations_of(r) != trail->annotations(place) ||
           (r.hooks && (has_new(r.hooks->tensor) || has_new(r.hooks->pre) || has_new(r.hooks->post)));
  };
  const auto leaf_changed = [&](const TensorImpl& leaf, uint32_t index) {
    if (annotations_of(leaf) != trail->leaf_annotations(index)) return true;
    const AutogradMeta* m = leaf.meta.get();
    return m && (has_new(m->tensor_hooks) || has_new(m->pre_hooks) || has_new(m->post_hooks) ||
                 has_new(m->post_accumulate_hooks));
  };
  for (size_t i = 0; i < std::min(events.size(), leave_at); ++i) {
    const DriveLog::Event& e = events[i];
    if (e.node <= plan.steps_[next].node) continue;
    const bool changed =
        e.kind == DriveLog::Kind::record ? record_changed(*reached.records[e.index], e.index)
        : e.kind == DriveLog::Kind::gave
            ? e.count && record_changed(*reached.records[e.index], e.index)  // its post-hooks
        : e.kind == DriveLog::Kind::leaf ? leaf_changed(*reached.leaves[e.index], e.index)
                                         : false;
    if (!changed) continue;
    leave_at = i;
    return;
  }
}

// A value of the arena is copied: the run gives it back.
Tensor Plan::Run::value(int32_t id) const {
  if (id == ir::kNoValue) return {};
  Tensor value = frame->give(plan.value_registers_[static_cast<size_t>(id)]);
  if (!value.defined() || !frame->is_in_arena(value.impl())) return value;
  Tensor copy;
  TensorImpl* const operand = value.get();
  const NoGradGuard no_grad;
  eager_emitter().emit({&ops::info<ops::Clone>, {&operand, 1}, nullptr, {}, 1}, &copy);
  return copy;
}

// The gradients that have arrived and are not used up, by number; those of inputs go to `state` at once.
std::vector<int32_t> Plan::Run::arrived_values(size_t count, BackwardState& state) const {
  std::vector<int32_t> arrived(count, ir::kNoValue);
  for (size_t i = 0; i < leave_at; ++i) {
    const DriveLog::Event& e = plan.log_.events[i];
    if (e.kind == DriveLog::Kind::arrived) arrived[e.index] = e.value;
    if (e.kind == DriveLog::Kind::captured) state.captured[e.index] = value(e.value);
    if (e.kind == DriveLog::Kind::record) std::fill_n(arrived.begin() + e.value, e.count, ir::kNoValue);
    if (e.kind == DriveLog::Kind::leaf) arrived[static_cast<size_t>(e.value)] = ir::kNoValue;
  }
  return arrived;
}

void Plan::Run::set_place(const Walk& walk, BackwardState& state) const {
  const DriveLog::Event& at = plan.log_.events[leave_at];
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

// The rule of the next record is done: its gradients, and what it gave.
void Plan::Run::set_given(const Walk::Item& item, BackwardState& state) {
  const auto list = plan.log_.lists.begin() + plan.log_.events[leave_at].value;
  for (int i = 0; i < item.record->outputs; ++i)
    state.grads[item.first_grad + static_cast<uint32_t>(i)] = value(list[i]);
  state.given = std::move(function_gave);
  if (!state.given.empty()) return;
  for (int i = 0; i < item.record->operands; ++i)
    state.given.push_back(value(list[item.record->outputs + i]));
}

Tensors Plan::Run::leave() {
  Walk walk = request.walk();
  BackwardState state;
  state.grads.resize(walk.grad_count());
  state.captured.resize(request.input_edges.size());
  const std::vector<int32_t> arrived = arrived_values(walk.grad_count(), state);
  for (size_t g = 0; g < arrived.size(); ++g) state.grads[g] = value(arrived[g]);
  set_place(walk, state);
  if (state.rule_is_done) set_given(walk.order()[state.next_record], state);
  frame->clear(plan.arena_offsets_.size());
  return resume_backward(request, walk, std::move(state));
}

}  // namespace retrograd
