// See tracer/plan/graph_runner.h.
#include "tracer/plan/graph_runner.h"

#include <algorithm>

#include "ops/shape_ops.h"

namespace retrograd::inline v0 {
namespace {

// Whether the elements of x are one block of memory: a permuted row-major tensor.
bool is_dense(const TensorImpl& x) {
  int64_t last = 0;
  for (int d = 0; d < x.rank(); ++d) last += (x.shape()[d].raw() - 1) * x.strides()[d];
  return x.numel().raw() > 0 && last + 1 == x.numel().raw();
}

Recordings& recordings_of(Frame& frame, const Program& program) {
  if (!frame.recordings) frame.recordings = std::make_unique<Recordings>(program);
  return *frame.recordings;
}

RefPtr<TensorImpl> as_row(const TensorImpl& x) {
  RefPtr<TensorImpl> row = TensorImpl::make();
  row->alias(x);
  row->set_type(x.dtype(), x.device(), {x.numel()});
  contiguous_strides(row->shape(), row->mutable_strides());
  return row;
}

}  // namespace

// During its lifetime, launches read staging cells instead of the values copied there, and results are stored in
// memory that is kept. Values from before the segment stay alive: their registers may get other values while the
// segment is recorded, before the graph has read them.
class GraphRunner::WhileRecorded {
 public:
  WhileRecorded(GraphRunner& runner, const Segment& segment, const Recorded& recorded)
      : runner_(runner), segment_(segment), before_(runner.frame_.at) {
    Frame& frame = runner_.frame_;
    for (size_t i = 0; i < segment.reads.size(); ++i) {
      const auto at = static_cast<size_t>(segment.reads[i].at);
      TensorImpl*& now = frame.at[at];
      if (frame.foreign[at]) given_.emplace_back(at, frame.foreign[at]);
      if (now && now == frame.own[at].get()) {
        computed_.emplace_back(at, TensorImpl::make());
        computed_.back().second->alias(*now);
        now = computed_.back().second.get();
      }
      if (const auto& staging = recorded.reads[i].staging) now = staging.get();
    }
    runner_.run_.launcher().recording = &runner_.all_;
  }
  ~WhileRecorded() {
    Frame& frame = runner_.frame_;
    for (const auto& [at, value] : computed_) frame.own[at]->alias(*value);
    for (auto& [at, value] : given_) frame.foreign[at] = std::move(value);
    for (const Segment::Read& read : segment_.reads)
      frame.at[static_cast<size_t>(read.at)] = before_[static_cast<size_t>(read.at)];
    runner_.run_.launcher().recording = nullptr;
  }
  WhileRecorded(const WhileRecorded&) = delete;

 private:
  GraphRunner& runner_;
  const Segment& segment_;
  const std::vector<TensorImpl*> before_;
  // Registers and their previous contents: cells of computed values, and values from elsewhere.
  std::vector<std::pair<size_t, RefPtr<TensorImpl>>> computed_, given_;
};

// ---- running ------------------------------------------------------------------------------------------------------

GraphRunner::GraphRunner(PlanRun& run)
    : run_(run), program_(run.program()), frame_(run.frame()), all_(recordings_of(frame_, program_)) {}

bool GraphRunner::go() {
  all_.stats = {};
  for (size_t i = 0; i < program_.segments.list.size(); ++i) {
    const Segment& s = program_.segments.list[i];
    run_.run_to(s.begin);
    run_.begin_unpacks();
    if (start(i)) {
      run_.skip_to(s.end);
      continue;
    }
    run_.run_to(s.end);
    all_.stats.launches += s.launches;
  }
  run_.run_to(program_.steps.size());
  return all_.is_warm = true;
}

// Returns false if nothing of the segment has run.
bool GraphRunner::start(size_t number) {
  Recorded& r = all_.segments[number];
  const Segment& segment = program_.segments.list[number];
  if (!segment.is_worth_a_graph() || r.is_given_up) return false;
  const bool has_moved = find_moved_reads(segment, r);
  if (!all_.is_warm) return false;
  try {
    const bool is_elsewhere = take_memory(segment, r) || has_moved;
    r.moves = r.graph && is_elsewhere ? r.moves + 1 : 0;
    if (r.moves > Recordings::kMostMoves)
      throw RuntimeError("what it reads and writes lies elsewhere in each run");
    fill_staging(segment, r);
    if (!r.graph || is_elsewhere || have_numbers_parted(r)) record(segment, r);
    r.graph->start();
    ++all_.stats.graph_launches;
  } catch (const std::exception& e) {
    r = {};
    r.is_given_up = true;
    ++all_.stats.given_up;
    run_.plan().note(number, e.what());
    return false;
  }
  finish(segment);
  return true;
}

// Whether a read has another address than before, after values that keep moving have got staging cells: a batch moves
// in each run, a parameter moves once. Values computed by the run have memory that does not move from run to run;
// memory that is written to is not copied.
bool GraphRunner::find_moved_reads(const Segment& segment, Recorded& recorded) {
  bool has_moved = false;
  for (size_t i = 0; i < segment.reads.size(); ++i) {
    const auto r = static_cast<size_t>(segment.reads[i].at);
    Recordings::Read& read = recorded.reads[i];
    const TensorImpl* x = frame_.at[r];
    const bool lies_alike =
        x && std::ranges::equal(read.strides, std::span(x->strides(), static_cast<size_t>(x->rank())));
    if (!x || (read.staging ? lies_alike : read.data == x->data() && lies_alike)) continue;
    has_moved = true;
    if (read.data) ++read.moves;
    const bool may_be_copied = lies_alike && frame_.foreign[r] && !segment.reads[i].is_written;
    read.staging.reset();
    if (read.moves >= Recordings::kMovesToCopy && may_be_copied && is_dense(*x)) {
      read.staging = TensorImpl::make();
      read.staging->alias(*x);
      read.staging->set_storage(memory_for(x->type()));
      read.staging->set_storage_offset(0);
    }
    read.data = x->data();
    read.strides.assign(x->strides(), x->strides() + x->rank());
  }
  return has_moved;
}

// Allocates memory for results of the segment that others may see. Returns whether some of it has another address
// than before.
bool GraphRunner::take_memory(const Segment& segment, Recorded& recorded) {
  bool has_moved = false;
  for (size_t i = 0; i < segment.memory.size(); ++i) {
    const auto r = static_cast<size_t>(segment.memory[i]);
    RefPtr<Storage>& memory = all_.memory[r];
    const uint32_t holders = memory ? memory->ref_count() - (frame_.own[r]->storage() == memory) : 0;
    if (holders > 1) {
      all_.is_copied[r] = true;
      memory.reset();
    }
    if (memory)
      program_.executor.reuse(*memory);
    else
      memory = memory_for(program_.layout.type(r));
    const void*& recorded_at = recorded.memory[i];
    has_moved |= recorded_at != memory->data();
    recorded_at = memory->data();
  }
  return has_moved;
}

RefPtr<Storage> GraphRunner::memory_for(const TensorType& type) const {
  const RefPtr<TensorImpl> cell = TensorImpl::make();
  cell->set_type(type.dtype, type.device, type.shape);
  program_.executor.allocate(*cell);
  return cell->storage();
}

void GraphRunner::copy(TensorImpl* from, TensorImpl* to) {
  constexpr const OpInfo* clone = &ops::info<ops::Clone>;
  program_.executor.launch(program_.executor.find(clone), {clone, {&from, 1}, nullptr, {}, 1}, &to);
  ++all_.stats.copies;
}

Tensor GraphRunner::copy_of(TensorImpl* x) {
  RefPtr<TensorImpl> made = TensorImpl::make();
  made->alias(*x);
  program_.executor.allocate(*made);
  copy(x, made.get());
  return Tensor(std::move(made));
}

void GraphRunner::fill_staging(const Segment& segment, const Recorded& recorded) {
  for (size_t i = 0; i < segment.reads.size(); ++i) {
    const RefPtr<TensorImpl>& staging = recorded.reads[i].staging;
    TensorImpl* const x = frame_.at[static_cast<size_t>(segment.reads[i].at)];
    if (staging && x) copy(as_row(*x).get(), as_row(*staging).get());
  }
}

// ---- recording ----------------------------------------------------------------------------------------------------

// Registers are not emptied before finish(): if recording fails, the segment begins again. Views after the last
// launch are also left to finish().
void GraphRunner::record(const Segment& segment, Recorded& recorded) {
  if (recorded.graph) {
    ++all_.stats.updates;
  } else {
    recorded.graph = program_.executor.new_graph();
    ++all_.stats.recordings;
  }
  size_t end = segment.end;
  while (program_.steps[end - 1].kind == StepKind::view) --end;
  const WhileRecorded scope(*this, segment, recorded);
  recorded.graph->begin();
  try {
    for (size_t i = segment.begin; i < end; ++i) run_.run_step(program_.steps[i]);
  } catch (...) {
    recorded.graph->cancel();
    throw;
  }
  recorded.graph->end();
  note_updates(segment, recorded);
}

void GraphRunner::note_updates(const Segment& segment, Recorded& recorded) {
  if (recorded.updates.empty())
    for (size_t i = segment.begin; i < segment.end; ++i) {
      const Step& s = program_.steps[i];
      if (s.kind == StepKind::fused && program_.node(s).op->is(Trait::updates))
        recorded.updates.emplace_back(program_, s);
    }
  for (Recordings::Updates& u : recorded.updates) u.cut(frame_);
}

bool GraphRunner::have_numbers_parted(const Recorded& recorded) const {
  return std::ranges::any_of(recorded.updates, [this](const auto& u) { return u.have_parted(frame_); });
}

// ---- after a graph ------------------------------------------------------------------------------------------------

// Sets the registers as the steps would have left them. Copies are made before any view.
void GraphRunner::finish(const Segment& segment) {
  for (int32_t r : segment.replaced) frame_.drop(r);
  for (int32_t m : segment.memory) {
    const auto r = static_cast<size_t>(m);
    run_.launcher().put_memory(r);
    frame_.at[r] = frame_.own[r].get();
    if (!all_.is_copied[r]) continue;
    frame_.set_foreign(m, copy_of(frame_.at[r]).take());
    frame_.own[r]->set_storage({});
  }
  for (uint32_t i : segment.views) run_.run_step(program_.steps[i]);
  for (int32_t r : segment.dead) frame_.drop(r);
  for (int32_t r : segment.drops) frame_.drop(r);
}

}  // namespace retrograd
