// The replay of a plan: see tracer/plan.h. Run::all is the loop. Kernels are launched in tracer/plan_launch.cc.
#include <algorithm>

#include "engine/function.h"
#include "engine/runner.h"
#include "ir/bookkeeping.h"
#include "tracer/peak_watch.h"
#include "tracer/plan_run.h"
#include "tracer/profile.h"

namespace retrograd {

Plan::Run::Run(const Plan& p, const BackwardRequest& request, const Reached& reached, const Trail* trail,
               std::vector<ir::Binding> bound, std::span<const Number> numbers)
    : plan(p),
      request(request),
      reached(reached),
      trail(trail),
      bindings(std::move(bound)),
      frame(p.spare_.exchange(nullptr, std::memory_order_acquire)),
      one_by_one(detail::profiling() || PeakWatch::current()),
      stop(p.steps_.size()) {
  if (!frame) frame = plan.new_frame();
  if (plan.arena_bytes_ > 0 && !frame->arena) frame->take_arena(plan);
  for (const Patch& p : plan.patches_)
    *reinterpret_cast<Scalar*>(frame->patched.data() + p.at) =
        Scalar(numbers[static_cast<size_t>(p.expression)]);
  for (const auto& [binding, r] : plan.tensor_inputs_)
    if (Tensor value = std::move(bindings[binding].tensor); r >= 0)  // else nobody uses it
      frame->set_foreign(r, std::move(value).take());
}

void Plan::Frame::take_arena(const Plan& plan) {
  arena = plan.executor_.allocate_memory(plan.arena_bytes_);
  if (arena->data() == arena_data) return;
  for (size_t r = 0; r < plan.arena_offsets_.size(); ++r) {
    Storage& memory = *own[r]->storage();
    memory.rewrap(static_cast<std::byte*>(arena->data()) + plan.arena_offsets_[r], memory.nbytes(), nullptr,
                  nullptr);
  }
  arena_data = arena->data();
}

// On any way out the registers are emptied and the frame is kept for the next run.
Plan::Run::~Run() {
  count_launches();
  frame->clear(plan.arena_offsets_.size());
  delete plan.spare_.exchange(frame.release(), std::memory_order_release);
}

void Plan::Run::step(const Step& s, void* attrs) {
  switch (s.kind) {
    case Kind::unpack: unpack_slot(s); break;
    case Kind::hook: hook(s); break;
    case Kind::function: function(s); break;
    case Kind::accumulate_grad: return accumulate(s);
    case Kind::retain_grad:
      return retain_gradient(*bindings[static_cast<size_t>(s.bound)].box, frame->give(registers(s)[0]));
    case Kind::release:
      if (!request.retain_graph) reached.records[s.place]->release_slots();
      return;
    case Kind::drop: return;
    case Kind::fused: return fused(s);
    case Kind::host: call(s, attrs); break;
    default: return call(s, attrs);
  }
  if (annotation_changes != seen_changes) look_ahead();  // code of the user's ran
}

Tensor Plan::Run::value_of_slot(uint64_t place, uint32_t index) {
  Record& record = *reached.records[place];
  Slot& slot = record.slot(index);
  return request.retain_graph ? unpack(record, slot) : unpack_and_release(record, slot);
}

void Plan::Run::unpack_slot(const Step& s) {
  frame->set_foreign(registers(s)[0], value_of_slot(s.place, s.slot).take());
}

// What span steps look at, beside one another on the stack: a kernel is called between any two of them, after which nothing that is reached
// through `this` is known any more.
struct Plan::Run::View {
  TensorImpl** at;
  const RefPtr<TensorImpl>* own;
  const int32_t* registers;
  const SlotRef* folded;
  Record* const* records;
  std::byte* patched;
  Executor& executor;
  bool releases;

  Slot* slot(uint32_t place, uint32_t offset) const {
    return reinterpret_cast<Slot*>(reinterpret_cast<char*>(records[place]) + offset);
  }
};

namespace {

char* data_of(const TensorImpl& x, int64_t item) {
  return static_cast<char*>(x.storage()->data()) + x.storage_offset() * item;
}

}  // namespace

// Where the operand in register r is, and the slot that it is in if it is folded. False when it is not contiguous or may not be read.
[[gnu::always_inline]] inline bool Plan::Run::find_operand(const Step& s, const View& v, int32_t r,
                                                           void*& data, Slot*& slot) {
  const TensorImpl* x;
  if (r >= 0) {
    x = v.at[r];
  } else {
    const SlotRef& ref = v.folded[-2 - r];
    slot = v.slot(ref.place, ref.offset);
    __builtin_prefetch(v.slot(ref.ahead, ref.offset));  // a guess: in records of one kind they lie alike
    x = slot->value();
    if (!x || slot->version != x->storage()->version()) return false;
    if (const Record& record = *v.records[ref.place];
        record.slots > 1 && v.releases && !record.is_unchanged())
      return false;
  }
  data = data_of(*x, s.item);
  return s.elements == 1 || x->is_contiguous();
}

// A place for the result in register r: the memory of the operand that it takes over, or new memory of the register's own cell.
[[gnu::always_inline]] inline bool Plan::Run::find_result(const Step& s, const View& v, int32_t r,
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

// False, with nothing done, when it is not as simple as that. The operands are not gone through in a loop, whose own work would be a good part
// of a step's.
[[gnu::always_inline]] inline bool Plan::Run::span(const Step& s, const View& v) {
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

// The span steps from `next` on. No code of the user's runs in them, so there is nothing to look at in between.
void Plan::Run::spans() {
  const View view{frame->at.data(),    frame->own.data(),      plan.registers_.data(),
                  plan.folded_.data(), reached.records.data(), frame->patched.data(),
                  plan.executor_,      !request.retain_graph};
  const size_t count = one_by_one || leave_at != kStay ? next + 1 : stop;
  const Step* s = plan.steps_.data() + next;
  const Step* const end = plan.steps_.data() + count;
  for (; s != end && s->kind == Kind::span && span(*s, view); ++s, ++next)
    if (s->dying) drop_dying(*s);
}

void Plan::Run::drop_dying(const Step& s) {
  const int32_t* dying = registers(s) + s.operands + s.results;
  for (int i = 0; i < s.dying; ++i) frame->drop(dying[i]);
}

bool Plan::Run::all() {
  detail::Profiling* const profiling = detail::profiling();
  std::optional<Watch> watch;
  if (PeakWatch::current()) watch.emplace(*this);
  while (next < stop) {
    const Step& s = plan.steps_[next];
    if (leave_at != kStay && s.node >= plan.log_.events[leave_at].node && s.kind != Kind::release)
      return false;
    if (early && early->is_due(next)) {
      const auto begin = [this] { early->before(next); };
      if (watch)
        watch->beside(begin);
      else
        begin();
    }
    const ProfiledStep profiled(profiling, s.node, s.kind >= Kind::release);
    const size_t before = next;
    if (watch) watch->before(s);
    if (s.kind == Kind::span) spans();
    if (next == before) {
      step(s, attrs_of(s.attrs));
      if (watch) watch->called();
      drop_dying(s);
      ++next;
    }
    if (watch) watch->after(s);
  }
  return leave_at == kStay;
}

void Plan::Run::accumulate(const Step& s) {
  const int32_t r = registers(s)[0];
  Tensor grad = frame->give(r);
  if (s.dying) frame->drop(r);  // then nobody else holds it, and the leaf may take it over
  accumulate_into_leaf(*bindings[static_cast<size_t>(s.bound)].leaf, grad.impl());
}

// The operands as tensors of their own, for code of the user's; and their cells.
std::vector<TensorImpl*> Plan::Run::give_operands(const Step& s, Tensors& operands) {
  std::vector<TensorImpl*> cells;
  for (int i = 0; i < s.operands; ++i) {
    operands.push_back(frame->give(registers(s)[i]));
    cells.push_back(operands.back().get());
  }
  return cells;
}

void Plan::Run::hook(const Step& s) {
  const ir::Binding& b = bindings[static_cast<size_t>(s.bound)];
  const int32_t* r = registers(s);
  Tensors operands, out(s.results);
  const std::vector<TensorImpl*> cells = give_operands(s, operands);
  const HookAttrs attrs{b.hook.get(), b.leaf, s.results};
  if (b.hook->is_live())
    run_hook(attrs, cells, out);
  else
    std::copy_n(operands.begin(), s.results, out.begin());
  for (int i = 0; i < s.results; ++i)
    if (out[static_cast<size_t>(i)].defined())
      frame->set_foreign(r[s.operands + i], std::move(out[static_cast<size_t>(i)]).take());
}

// One node for the whole backward of a user's function. A gradient that it does not give, though it was taken to, is left undefined by
// going on eagerly: zeros would be another gradient.
void Plan::Run::function(const Step& s) {
  Record& record = *bindings[static_cast<size_t>(s.bound)].record;
  const int32_t* r = registers(s);
  Tensors operands, out(s.results);
  const std::vector<TensorImpl*> cells = give_operands(s, operands);
  if (record.hooks && record.hooks->saved) record.hooks->saved->begin(!request.retain_graph);
  record.op->host_backward(record, cells, out.data());
  bool all_given = true;
  for (int i = 0; i < s.results; ++i)
    all_given &=
        out[static_cast<size_t>(i)].defined() ||
        plan.graph_.type(plan.graph_.nodes()[s.node].first_result + i).dtype == ScalarType::Undefined;
  if (!all_given) {
    const auto& events = plan.log_.events;
    for (leave_at = 0;
         !(events[leave_at].kind == DriveLog::Kind::gave && events[leave_at].node == s.node + 1);)
      ++leave_at;
    function_gave = std::move(out);
    return;
  }
  for (int i = 0; i < s.results; ++i)
    if (out[static_cast<size_t>(i)].defined())
      frame->set_foreign(r[s.operands + i], std::move(out[static_cast<size_t>(i)]).take());
}

Tensors Plan::Run::outputs() {
  Tensors all;
  for (int32_t r : plan.output_registers_) all.push_back(frame->give(r));
  return all;
}

Plan::Outcome Plan::run(const BackwardRequest& request, const Reached& reached, const Trail& trail,
                        std::span<const Number> numbers) const {
  std::vector<ir::Binding> bindings;
  bindings.reserve(bound_.size());
  Binder bind(request, reached);
  for (uint32_t input : bound_) bindings.push_back(bind(sources_[input]));
  Run run(*this, request, reached, &trail, std::move(bindings), numbers);
  const bool arrived = run_steps(run);
  return {arrived ? run.outputs() : run.leave(), !arrived};
}

Tensors Plan::run(std::vector<ir::Binding> bindings, std::span<const Number> numbers, FunctionRun* of) const {
  static const BackwardRequest none;
  static const Reached nothing;
  Run run(*this, none, nothing, nullptr, std::move(bindings), numbers);
  run.function_run = of;
  const auto begun = [&] { return size_t{steps_[run.next].node} + 1; };
  if (of) of->begun = begun;
  try {
    run_steps(run);
  } catch (...) {
    if (of) *of = {first_node(steps_[run.next]), begun()};
    throw;
  }
  if (of) *of = {graph_.nodes().size(), graph_.nodes().size()};
  return run.outputs();
}

bool Plan::run_steps(Run& run) const {
  try {
    if (!unpacks_.empty()) run.early = Early::of(run);
    if (records_ && !run.one_by_one) return run.with_graphs();
    run.one_by_one |= run.early != nullptr;
    return run.all();
  } catch (Exception& e) {
    ir::add_context(e, graph_, graph_.nodes()[steps_[run.next].node]);
    throw;
  }
}

}  // namespace retrograd
