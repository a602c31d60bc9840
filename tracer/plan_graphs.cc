// Runs of a plan as graphs of launches: see tracer/segments.h and tracer/plan_graphs.h. Start reading at with_graphs(), then start().
//
// The first run of a frame launches step by step: libraries are opened, pools filled, and addresses seen. In the second one each segment is
// recorded: its steps run as they do otherwise, between begin() and end() of a graph, and then that is started. From then on the host does for
// a segment what it must: it looks whether memory lies where it lay, fills slots, starts the graph, which finds the numbers of the run by itself,
// and leaves the registers as the steps would have. Work that fails is not done by halves: until the graph is started nothing of the segment has
// run, so its steps can be launched one by one instead.
#include "tracer/plan_graphs.h"

#include <algorithm>

#include "ops/shape_ops.h"

namespace retrograd {
namespace {

// The elements of x are one piece of memory: a permuted row-major tensor.
bool is_dense(const TensorImpl& x) {
  int64_t last = 0;
  for (int d = 0; d < x.rank(); ++d) last += (x.shape()[d].raw() - 1) * x.strides()[d];
  return x.numel().raw() > 0 && last + 1 == x.numel().raw();
}

RefPtr<TensorImpl> as_row(const TensorImpl& x) {
  RefPtr<TensorImpl> row = TensorImpl::make();
  row->alias(x);
  row->set_type(x.dtype(), x.device(), {x.numel()});
  contiguous_strides(row->shape(), row->mutable_strides());
  return row;
}

}  // namespace

// ---- running ---------------------------------------------------------------------------------------------------------------------------

bool Plan::Run::with_graphs() {
  if (!frame->recordings) frame->recordings = std::make_unique<Recordings>(plan);
  Recordings& all_recorded = *frame->recordings;
  all_recorded.stats = {};
  for (size_t i = 0; i < plan.segments_.list.size(); ++i) {
    const Segment& s = plan.segments_.list[i];
    stop = s.begin;
    all();
    if (early && early->is_due(next)) early->before(next);
    if (start(i)) {
      next = s.end;
      continue;
    }
    stop = s.end;
    all();
    all_recorded.stats.launches += s.launches;
  }
  stop = plan.steps_.size();
  all();
  return all_recorded.is_warm = true;
}

// False: nothing of the segment has run.
bool Plan::Run::start(size_t number) {
  Recordings& all_recorded = *frame->recordings;
  Recordings::Recorded& r = all_recorded.segments[number];
  if (!plan.segments_.list[number].is_worth_a_graph() || r.is_given_up) return false;
  const bool has_moved = look_at_reads(number);
  if (!all_recorded.is_warm) return false;
  try {
    const bool is_elsewhere = take_memory(number) || has_moved;
    r.moves = r.graph && is_elsewhere ? r.moves + 1 : 0;
    if (r.moves > Recordings::kMostMoves)
      throw RuntimeError("what it reads and writes lies elsewhere in each run");
    fill_slots(number);
    if (!r.graph || is_elsewhere || have_numbers_parted(number)) record(number);
    r.graph->start();
    ++all_recorded.stats.graph_launches;
  } catch (const std::exception& e) {
    r = {};
    r.is_given_up = true;
    ++all_recorded.stats.given_up;
    std::lock_guard lock(plan.stats_mutex_);
    plan.notes_[number] = e.what();
    return false;
  }
  finish(number);
  return true;
}

// Whether one lies elsewhere than before, after a value that keeps moving has got its slot: a batch does, a parameter is put elsewhere once. What
// the run has computed has memory of its own, which does not move from run to run; memory that is written to is not copied.
bool Plan::Run::look_at_reads(size_t number) {
  const Segment& segment = plan.segments_.list[number];
  bool has_moved = false;
  for (size_t i = 0; i < segment.reads.size(); ++i) {
    const auto r = static_cast<size_t>(segment.reads[i].at);
    Recordings::Seen& seen = frame->recordings->segments[number].reads[i];
    const TensorImpl* x = frame->at[r];
    const bool lies_alike =
        x && std::ranges::equal(seen.strides, std::span(x->strides(), static_cast<size_t>(x->rank())));
    if (!x || (seen.slot ? lies_alike : seen.data == x->data() && lies_alike)) continue;
    has_moved = true;
    if (seen.data) ++seen.moves;
    const bool may_be_copied = lies_alike && frame->foreign[r] && !segment.reads[i].is_written;
    seen.slot.reset();
    if (seen.moves >= Recordings::kMovesToCopy && may_be_copied && is_dense(*x)) {
      seen.slot = TensorImpl::make();
      seen.slot->alias(*x);
      seen.slot->set_storage(memory_for(x->type()));
      seen.slot->set_storage_offset(0);
    }
    seen.data = x->data();
    seen.strides.assign(x->strides(), x->strides() + x->rank());
  }
  return has_moved;
}

// Memory for what the segment computes and others may see. Whether some of it lies elsewhere than before.
bool Plan::Run::take_memory(size_t number) {
  Recordings& all_recorded = *frame->recordings;
  const Segment& segment = plan.segments_.list[number];
  bool has_moved = false;
  for (size_t i = 0; i < segment.memory.size(); ++i) {
    const auto r = static_cast<size_t>(segment.memory[i]);
    RefPtr<Storage>& memory = all_recorded.memory[r];
    const uint32_t holders = memory ? memory->ref_count() - (frame->own[r]->storage() == memory) : 0;
    if (holders > 1) {
      all_recorded.is_copied[r] = true;
      memory.reset();
    }
    if (memory)
      plan.executor_.reuse(*memory);
    else
      memory = memory_for(plan.cell_types_[static_cast<size_t>(plan.register_types_[r])]);
    const void*& recorded_at = all_recorded.segments[number].memory[i];
    has_moved |= recorded_at != memory->data();
    recorded_at = memory->data();
  }
  return has_moved;
}

RefPtr<Storage> Plan::Run::memory_for(const TensorType& type) const {
  const RefPtr<TensorImpl> cell = TensorImpl::make();
  cell->set_type(type.dtype, type.device, type.shape);
  plan.executor_.allocate(*cell);
  return cell->storage();
}

Tensor Plan::Run::copy_of(TensorImpl* x) {
  RefPtr<TensorImpl> copy = TensorImpl::make();
  copy->alias(*x);
  plan.executor_.allocate(*copy);
  TensorImpl* to = copy.get();
  plan.executor_.launch(plan.executor_.find(&ops::info<ops::Clone>),
                        {&ops::info<ops::Clone>, {&x, 1}, nullptr, {}, 1}, &to);
  ++frame->recordings->stats.copies;
  return Tensor(std::move(copy));
}

void Plan::Run::fill_slots(size_t number) {
  const Segment& segment = plan.segments_.list[number];
  for (size_t i = 0; i < segment.reads.size(); ++i) {
    const RefPtr<TensorImpl>& slot = frame->recordings->segments[number].reads[i].slot;
    TensorImpl* const x = frame->at[static_cast<size_t>(segment.reads[i].at)];
    if (!slot || !x) continue;
    const RefPtr<TensorImpl> from = as_row(*x), to = as_row(*slot);
    TensorImpl *operand = from.get(), *result = to.get();
    plan.executor_.launch(plan.executor_.find(&ops::info<ops::Clone>),
                          {&ops::info<ops::Clone>, {&operand, 1}, nullptr, {}, 1}, &result);
    ++frame->recordings->stats.copies;
  }
}

// ---- behind a graph --------------------------------------------------------------------------------------------------------------------

// The registers become what the steps would have left. Copies are taken before anybody makes a view.
void Plan::Run::finish(size_t number) {
  const Segment& segment = plan.segments_.list[number];
  const Recordings& all_recorded = *frame->recordings;
  for (int32_t r : segment.replaced) frame->drop(r);
  for (int32_t m : segment.memory) {
    const auto r = static_cast<size_t>(m);
    put_memory(r, all_recorded);
    frame->at[r] = frame->own[r].get();
    if (!all_recorded.is_copied[r]) continue;
    frame->set_foreign(m, copy_of(frame->at[r]).take());
    frame->own[r]->set_storage({});
  }
  for (uint32_t i : segment.views) {
    const Step& s = plan.steps_[i];
    step(s, attrs_of(s.attrs));
  }
  for (int32_t r : segment.dead) frame->drop(r);
  for (int32_t r : segment.drops) frame->drop(r);
}

// Also of a run that was broken off.
void Plan::Run::count_launches() const {
  if (!frame->recordings) return;
  std::lock_guard lock(plan.stats_mutex_);
  plan.stats_.add(frame->recordings->stats);
}

Plan::Frame::Frame() = default;
Plan::Frame::~Frame() = default;

}  // namespace retrograd
