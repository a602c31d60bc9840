// See tracer/plan/run.h.
#include "tracer/plan/run.h"

#include <algorithm>
#include <optional>

#include "engine/bookkeeping.h"
#include "engine/function.h"
#include "engine/runner.h"
#include "tracer/observe/profile.h"
#include "tracer/plan/graph_runner.h"
#include "tracer/plan/peak_meter.h"
#include "tracer/plan/planner.h"
#include "tracer/plan/recordings.h"
#include "tracer/plan/run_meter.h"
#include "tracer/plan/unpack_prefetch.h"

namespace retrograd::inline v0 {

PlanRun::PlanRun(const Plan& plan, std::vector<ir::Binding> bindings, std::span<const Number> numbers,
                 SavedSlots slots, RunObserver* observer)
    : plan_(plan),
      program_(plan.program()),
      slots_(slots),
      observer_(observer),
      bindings_(std::move(bindings)),
      frame_(plan.lease_frame()),
      launcher_(program_, *frame_, slots),
      one_by_one_(detail::profiling() || PeakMeter::current()) {
  frame_->take_arena(program_);
  program_.attrs.fill_in(frame_->patched, numbers);
  for (const auto& [binding, r] : program_.tensor_inputs)
    if (Tensor value = std::move(bindings_[binding].tensor); r >= 0)
      frame_->set_foreign(r, std::move(value).take());
}

PlanRun::~PlanRun() {
  if (frame_->recordings) plan_.count(frame_->recordings->stats);
  empty_registers();
  plan_.give_back(std::move(frame_));
}

bool PlanRun::go_before(uint32_t node) {
  size_t end = next_;
  while (end < program_.steps.size() && program_.first_node(program_.steps[end]) < node) ++end;
  return go_to(end);
}

bool PlanRun::go_to(size_t end) {
  try {
    if (next_ == 0 && !program_.unpacks.empty()) prefetcher_ = UnpackPrefetcher::of(*this);
    if (runs_graphs()) return GraphRunner(*this).go();
    one_by_one_ |= prefetcher_ != nullptr;
    return run_to(end);
  } catch (Exception& e) {
    ir::add_context(e, program_.graph, program_.node(program_.steps[next_]));
    throw;
  }
}

bool PlanRun::run_to(size_t end) {
  detail::Profiling* const profiling = detail::profiling();
  std::optional<RunMeter> meter;
  if (PeakMeter::current()) meter.emplace(*this);
  while (next_ < end) {
    const Step& s = program_.steps[next_];
    if (stop_node_ != kGoOn && s.node >= stop_node_ && s.kind != StepKind::release) return false;
    if (prefetcher_ && prefetcher_->is_due(next_)) {
      if (meter)
        meter->between_steps([this] { begin_unpacks(); });
      else
        begin_unpacks();
    }
    const ProfiledStep profiled(profiling, s.node, s.kind >= StepKind::release);
    const size_t before = next_;
    if (meter) meter->before(s);
    if (s.kind == StepKind::span) spans(end);
    if (next_ == before) {
      run_step(s);
      if (meter) meter->called();
      drop_dying(s);
      ++next_;
    }
    if (meter) meter->after(s);
  }
  return stop_node_ == kGoOn;
}

void PlanRun::begin_unpacks() {
  if (prefetcher_ && prefetcher_->is_due(next_)) prefetcher_->before(next_);
}

void PlanRun::run_step(const Step& s) {
  switch (s.kind) {
    case StepKind::unpack: unpack(s); break;
    case StepKind::hook: hook(s); break;
    case StepKind::function: function(s); break;
    case StepKind::code: launcher_.code(s, *bindings_[static_cast<size_t>(s.bound)].code); break;
    case StepKind::accumulate_grad: return accumulate(s);
    case StepKind::retain_grad:
      return retain_gradient(*bindings_[static_cast<size_t>(s.bound)].box,
                             frame_->give(program_.registers_of(s)[0]));
    case StepKind::release:
      if (!slots_.retain) slots_.records[s.record]->release_slots();
      return;
    case StepKind::drop: return;
    case StepKind::fused: return launcher_.fused(s);
    case StepKind::host: launcher_.call(s); break;
    default: return launcher_.call(s);
  }
  if (annotation_changes != seen_changes_) tell_observer();  // user code ran
}

// ---- spans --------------------------------------------------------------------------------------------------------

namespace {

// The data that span steps read, together on the stack: after each kernel call between them the compiler can no
// longer assume anything about data reached through `this`.
struct SpanView {
  TensorImpl** at;
  const RefPtr<TensorImpl>* own;
  const int32_t* registers;
  const FoldedSlot* folded;
  Record* const* records;
  std::byte* patched;
  Executor& executor;
  bool releases;

  Slot* slot(uint32_t record, uint32_t offset) const {
    return reinterpret_cast<Slot*>(reinterpret_cast<char*>(records[record]) + offset);
  }
};

char* data_of(const TensorImpl& x, int64_t item) {
  return static_cast<char*>(x.storage()->data()) + x.storage_offset() * item;
}

// The address of the operand in register r, and its slot if it is folded. Returns false if it is not contiguous or
// may not be read.
[[gnu::always_inline]] inline bool find_operand(const Step& s, const SpanView& v, int32_t r, void*& data,
                                                Slot*& slot) {
  const TensorImpl* x;
  if (r >= 0) {
    x = v.at[r];
  } else {
    const FoldedSlot& folded = v.folded[-2 - r];
    slot = v.slot(folded.record, folded.offset);
    __builtin_prefetch(
        v.slot(folded.ahead, folded.offset));  // a guess: records of one kind have the same layout
    x = slot->value();
    if (!x || slot->version != x->storage()->version()) return false;
    if (const Record& record = *v.records[folded.record];
        record.slots > 1 && v.releases && !record.is_unchanged())
      return false;
  }
  data = data_of(*x, s.item);
  return s.elements == 1 || x->is_contiguous();
}

// The memory for the result in register r: that of the operand that it takes over, or new memory of the register's
// own cell.
[[gnu::always_inline]] inline bool find_result(const Step& s, const SpanView& v, int32_t r,
                                               void* const* operands, void*& data) {
  if (s.takes_own) {
    data = operands[s.takes];
    return true;
  }
  TensorImpl* own = v.own[r].get();
  if (s.into) {
    own = v.at[r];
  } else if (s.takes >= 0) {
    if (v.at[r] != own || !own->is_unshared()) return false;
  } else {
    v.executor.allocate(*own);
    v.at[r] = own;
  }
  data = data_of(*own, s.item);
  return true;
}

// Returns false, with nothing done, if the step is not that simple. There is no loop over operands: its overhead
// would be a good part of the cost of a step.
[[gnu::always_inline]] inline bool run_span(const Step& s, const SpanView& v) {
  const int32_t* r = v.registers + s.first_register;
  void* in[kMaxSpanOperands];
  void* out;
  Slot* slot = nullptr;
  if (!find_operand(s, v, r[0], in[0], slot)) return false;
  if (s.operands > 1 && !find_operand(s, v, r[1], in[1], slot)) return false;
  if (s.operands > 2 && !find_operand(s, v, r[2], in[2], slot)) return false;
  if (!find_result(s, v, r[s.operands], in, out)) return false;
  s.span(out, in, s.elements, s.attrs.is_patched ? v.patched + s.attrs.patched_at : s.attrs.fixed);
  if (slot && v.releases) {
    slot->take();
    slot->released = true;
  }
  return true;
}

}  // namespace

// Runs the span steps from the next one on. They run no user code, so nothing needs to be checked in between.
void PlanRun::spans(size_t end) {
  const SpanView view{frame_->at.data(),      frame_->own.data(),    program_.registers.data(),
                      program_.folded.data(), slots_.records.data(), frame_->patched.data(),
                      program_.executor,      !slots_.retain};
  const size_t count = one_by_one_ || stop_node_ != kGoOn ? next_ + 1 : end;
  const Step* s = program_.steps.data() + next_;
  const Step* const last = program_.steps.data() + count;
  for (; s != last && s->kind == StepKind::span && run_span(*s, view); ++s, ++next_)
    if (s->dying) drop_dying(*s);
}

void PlanRun::drop_dying(const Step& s) {
  const int32_t* dying = program_.registers_of(s) + s.operands + s.results;
  for (int i = 0; i < s.dying; ++i) frame_->drop(dying[i]);
}

// An input has its register from the beginning, until a step drops it or has a result there. The step that has thrown
// may have overwritten what its results take over, but has dropped nothing.
Tensors PlanRun::inputs_left() const {
  std::vector<bool> is_gone(frame_->at.size());
  const auto note = [&](const int32_t* registers, int count) {
    for (int i = 0; i < count; ++i)
      if (registers[i] >= 0) is_gone[static_cast<size_t>(registers[i])] = true;
  };
  for (size_t n = 0; n <= next_ && n < program_.steps.size(); ++n) {
    const Step& s = program_.steps[n];
    const int32_t* results = program_.registers_of(s) + s.operands;
    note(results, s.results);
    if (n < next_) note(results + s.results, s.dying);
  }
  Tensors left(bindings_.size());
  for (const auto& [binding, r] : program_.tensor_inputs)
    if (r >= 0 && !is_gone[static_cast<size_t>(r)]) left[binding] = frame_->give(r);
  return left;
}

// ---- steps that may call user code --------------------------------------------------------------------------------

void PlanRun::unpack(const Step& s) {
  frame_->set_foreign(program_.registers_of(s)[0], slots_.value(s.record, s.slot).take());
}

void PlanRun::accumulate(const Step& s) {
  const int32_t r = program_.registers_of(s)[0];
  Tensor grad = frame_->give(r);
  if (s.dying) frame_->drop(r);  // then only this reference is left, and the leaf may take it over
  accumulate_into_leaf(*bindings_[static_cast<size_t>(s.bound)].leaf, grad.impl());
}

// The operands as separate tensors, for user code; and their cells.
std::vector<TensorImpl*> PlanRun::give_operands(const Step& s, Tensors& operands) const {
  std::vector<TensorImpl*> cells;
  for (int i = 0; i < s.operands; ++i) {
    operands.push_back(frame_->give(program_.registers_of(s)[i]));
    cells.push_back(operands.back().get());
  }
  return cells;
}

void PlanRun::take_results(const Step& s, Tensors& results) {
  const int32_t* r = program_.registers_of(s) + s.operands;
  for (size_t i = 0; i < s.results; ++i)
    if (results[i].defined()) frame_->set_foreign(r[i], std::move(results[i]).take());
}

void PlanRun::hook(const Step& s) {
  const ir::Binding& b = bindings_[static_cast<size_t>(s.bound)];
  Tensors operands, out(s.results);
  const std::vector<TensorImpl*> cells = give_operands(s, operands);
  const HookAttrs attrs{{}, b.hook.get(), b.leaf, s.results};
  if (b.hook->is_live())
    run_hook(attrs, cells, out);
  else
    std::copy_n(operands.begin(), s.results, out.begin());
  take_results(s, out);
}

// One node for the whole backward of a user function. A gradient that it does not return, though the graph has it,
// cannot be replaced by zeros: that would be another gradient.
void PlanRun::function(const Step& s) {
  Record& record = *bindings_[static_cast<size_t>(s.bound)].record;
  Tensors operands, out(s.results);
  const std::vector<TensorImpl*> cells = give_operands(s, operands);
  if (record.hooks && record.hooks->saved) record.hooks->saved->begin(!slots_.retain);
  record.op->host_backward(record, cells, out.data());
  const ir::ValueId first = program_.node(s).first_result;
  bool all_given = true;
  for (int i = 0; i < s.results; ++i)
    all_given &= out[static_cast<size_t>(i)].defined() ||
                 program_.graph.type(first + i).dtype == ScalarType::Undefined;
  if (all_given) return take_results(s, out);
  RG_ASSERT(observer_);
  stop_node_ = s.node + 1;
  observer_->gradient_missing(s.node, std::move(out));
}

void PlanRun::tell_observer() {
  seen_changes_ = annotation_changes;
  if (observer_) stop_node_ = std::min(stop_node_, observer_->annotations_changed(*this));
}

// ---- values -------------------------------------------------------------------------------------------------------

Tensors PlanRun::outputs() const {
  Tensors all;
  for (int32_t r : program_.output_registers) all.push_back(frame_->give(r));
  return all;
}

Tensor PlanRun::take_output(size_t number) {
  const int32_t r = program_.output_registers[number];
  Tensor output = frame_->give(r);
  if (r >= 0) frame_->drop(r);
  return output;
}

Tensors run_plan(const Plan& plan, std::vector<ir::Binding> bindings, std::span<const Number> numbers) {
  PlanRun run(plan, std::move(bindings), numbers);
  run.go();
  return run.outputs();
}

Tensor PlanRun::value(ir::ValueId id) const {
  if (id == ir::kNoValue) return {};
  return frame_->give(program_.value_registers[static_cast<size_t>(id)]);
}

}  // namespace retrograd
