// See tracer/plan.h. Plan::run is the loop of a replay.
#include "tracer/plan.h"

#include <algorithm>
#include <cstring>

#include "engine/runner.h"
#include "ir/bookkeeping.h"

namespace retrograd {

// `own` are the prepared cells; `at` what a register holds now: its own cell, or a foreign one that `foreign` keeps alive.
struct Plan::Frame {
  std::vector<RefPtr<TensorImpl>> own;
  std::vector<TensorImpl*> at;
  std::vector<RefPtr<TensorImpl>> foreign;
  std::vector<std::byte> patched;

  void set_foreign(int32_t r, Tensor value) {
    at[static_cast<size_t>(r)] = value.get();
    foreign[static_cast<size_t>(r)] = std::move(value).take();
  }
  void drop(int32_t r) {
    const auto i = static_cast<size_t>(r);
    if (foreign[i]) foreign[i].reset();
    else if (at[i]) own[i]->set_storage({});
    at[i] = nullptr;
  }
  void clear() {
    for (size_t i = 0; i < at.size(); ++i)
      if (at[i]) drop(static_cast<int32_t>(i));
  }
  // The value as a tensor of its own, its memory handed over when the register is done with it.
  Tensor give(int32_t r) {
    const auto i = static_cast<size_t>(r);
    if (!at[i]) return {};
    if (foreign[i]) return Tensor(foreign[i]);
    RefPtr<TensorImpl> cell = TensorImpl::make();
    cell->alias(*own[i]);
    return Tensor(std::move(cell));
  }
};

namespace {

class HasNumbers final : public AttrVisitor {
 public:
  bool found = false;
  void field(std::string_view, bool&) override {}
  void field(std::string_view, int64_t&) override {}
  void field(std::string_view, Dim&) override {}
  void field(std::string_view, Scalar& v) override { found |= v.is_symbolic(); }
  void field(std::string_view, Shape&) override {}
  void field(std::string_view, IntList&) override {}
  void field(std::string_view, ScalarType&) override {}
};

}  // namespace

Plan::Plan(const ir::Graph& graph, std::span<const Number> values, Executor& executor) : graph_(graph), executor_(executor) {
  plan_steps(values);
  assign_registers();
  cell_types_.clear();
  for (const TensorType& t : graph.types()) cell_types_.push_back(ir::concrete_type(t, values));
}

Plan::~Plan() { delete spare_.load(); }

void Plan::plan_steps(std::span<const Number> values) {
  std::vector<std::byte> copy;
  for (const ir::Node& node : graph_.nodes()) {
    Step s{};
    s.op = node.op;
    s.where = node.where;
    s.handle = node.handle;
    s.operands = node.operands;
    s.results = node.results;
    s.takes = -1;
    s.kind = node.op == &ops::unpack            ? Kind::unpack
             : node.op == &ops::hook            ? Kind::hook
             : node.op == &ops::accumulate_grad ? Kind::accumulate_grad
             : node.op == &ops::retain_grad     ? Kind::retain_grad
             : node.op->run_on_host             ? Kind::host
             : node.op->is(Trait::view)         ? Kind::view
                                                : Kind::kernel;
    if (s.kind == Kind::kernel && !(s.kernel = executor_.find(node.op)))
      throw Error(Category::unsupported, std::string(node.op->name) + ": the " + std::string(executor_.name()) + " executor has no kernel for it");
    if (node.attrs) {
      attrs_.push_back(std::make_unique<std::byte[]>(node.op->attrs_size));
      s.attrs = attrs_.back().get();
      std::memcpy(s.attrs, ir::concrete_attrs(*node.op, node.attrs, values, copy), node.op->attrs_size);
      HasNumbers numbers;
      node.op->visit_attrs(node.attrs, numbers);
      if (numbers.found) {
        patches_.push_back({static_cast<uint32_t>(steps_.size()), patch_bytes_, node.attrs});
        patch_bytes_ += (node.op->attrs_size + 15u) / 16 * 16;
      }
    }
    steps_.push_back(s);
  }
}

// Linear scan: a register is free for the next value of its type after the step in which its value dies.
void Plan::assign_registers() {
  const auto values = static_cast<size_t>(graph_.value_count());
  const auto& nodes = graph_.nodes();
  std::vector<int32_t> last(values, -1), reg(values, -1);
  for (size_t n = 0; n < nodes.size(); ++n) {
    for (ir::ValueId v : graph_.operands(nodes[n]))
      if (v != ir::kNoValue) last[static_cast<size_t>(v)] = static_cast<int32_t>(n);
    for (int i = 0; i < nodes[n].results; ++i) {
      auto& l = last[static_cast<size_t>(nodes[n].first_result + i)];
      l = std::max(l, static_cast<int32_t>(n));
    }
  }
  for (ir::ValueId v : graph_.outputs())
    if (v != ir::kNoValue) last[static_cast<size_t>(v)] = static_cast<int32_t>(nodes.size());
  std::vector<std::vector<int32_t>> free(graph_.types().size());
  std::vector<int32_t> types;  // of each register
  auto take = [&](ir::ValueId v) {
    auto& list = free[static_cast<size_t>(graph_.type_index(v))];
    if (list.empty()) {
      list.push_back(static_cast<int32_t>(types.size()));
      types.push_back(graph_.type_index(v));
    }
    reg[static_cast<size_t>(v)] = list.back();
    list.pop_back();
  };
  for (const ir::Input& input : graph_.inputs()) {
    if (input.kind == ir::Input::Kind::tensor) take(input.value);
    input_registers_.push_back(input.kind == ir::Input::Kind::tensor ? reg[static_cast<size_t>(input.value)] : -1);
  }
  for (size_t n = 0; n < nodes.size(); ++n) {
    Step& s = steps_[n];
    s.first_register = static_cast<uint32_t>(registers_.size());
    const auto operands = graph_.operands(nodes[n]);
    for (ir::ValueId v : operands) registers_.push_back(v == ir::kNoValue ? -1 : reg[static_cast<size_t>(v)]);
    const auto at = [&](ir::ValueId v) -> int32_t& { return last[static_cast<size_t>(v)]; };
    for (size_t k = 0; k < operands.size() && s.kind == Kind::kernel && s.op->is(Trait::elementwise) && s.takes < 0; ++k)
      if (operands[k] != ir::kNoValue && at(operands[k]) == static_cast<int32_t>(n) &&
          graph_.type_index(operands[k]) == graph_.type_index(nodes[n].first_result)) {
        s.takes = static_cast<int8_t>(k);
        at(operands[k]) = -1;
        reg[static_cast<size_t>(nodes[n].first_result)] = reg[static_cast<size_t>(operands[k])];
      }
    for (int i = 0; i < s.results; ++i) {
      if (s.takes < 0) take(nodes[n].first_result + i);
      registers_.push_back(reg[static_cast<size_t>(nodes[n].first_result + i)]);
    }
    auto die = [&](ir::ValueId v) {
      registers_.push_back(reg[static_cast<size_t>(v)]);
      free[static_cast<size_t>(graph_.type_index(v))].push_back(reg[static_cast<size_t>(v)]);
      at(v) = -1;  // once only
      ++s.dying;
    };
    for (ir::ValueId v : operands)
      if (v != ir::kNoValue && at(v) == static_cast<int32_t>(n)) die(v);
    for (int i = 0; i < s.results; ++i)
      if (at(nodes[n].first_result + i) == static_cast<int32_t>(n)) die(nodes[n].first_result + i);
  }
  for (ir::ValueId v : graph_.outputs()) output_registers_.push_back(v == ir::kNoValue ? -1 : reg[static_cast<size_t>(v)]);
  register_types_ = std::move(types);
}

std::unique_ptr<Plan::Frame> Plan::new_frame() const {
  auto frame = std::make_unique<Frame>();
  for (int32_t type : register_types_) {
    const TensorType& t = cell_types_[static_cast<size_t>(type)];
    RefPtr<TensorImpl> cell = TensorImpl::make();
    cell->set_type(t.dtype, t.device, t.shape);
    contiguous_strides(t.shape, cell->mutable_strides());
    frame->own.push_back(std::move(cell));
  }
  frame->at.resize(frame->own.size());
  frame->foreign.resize(frame->own.size());
  frame->patched.resize(patch_bytes_);
  return frame;
}

void Plan::patch_numbers(Frame& frame, std::span<const Number> numbers) const {
  std::vector<std::byte> copy;
  for (const Patch& p : patches_) {
    const OpInfo& op = *steps_[p.step].op;
    std::memcpy(frame.patched.data() + p.offset, ir::concrete_attrs(op, p.symbolic, numbers, copy), op.attrs_size);
  }
}

Tensors Plan::run(std::span<const ir::Binding> bindings, std::span<const Number> numbers, bool retain) const {
  std::unique_ptr<Frame> frame(spare_.exchange(nullptr, std::memory_order_acquire));
  if (!frame) frame = new_frame();
  struct Lease {  // on any way out the registers are emptied and the frame is kept for the next run
    const Plan& plan;
    std::unique_ptr<Frame>& frame;
    ~Lease() {
      frame->clear();
      delete plan.spare_.exchange(frame.release(), std::memory_order_release);
    }
  } lease{*this, frame};
  if (!patches_.empty()) patch_numbers(*frame, numbers);
  for (size_t i = 0; i < input_registers_.size(); ++i)
    if (input_registers_[i] >= 0) frame->set_foreign(input_registers_[i], bindings[i].tensor);
  auto patch = patches_.begin();
  for (size_t n = 0; n < steps_.size(); ++n) {
    const Step& step = steps_[n];
    void* attrs = step.attrs;
    if (patch != patches_.end() && patch->step == n) attrs = frame->patched.data() + (patch++)->offset;
    run_step(*frame, step, attrs, bindings, retain);
    const int32_t* dying = registers_.data() + step.first_register + step.operands + step.results;
    for (int i = 0; i < step.dying; ++i) frame->drop(dying[i]);
  }
  Tensors outputs;
  for (int32_t r : output_registers_) outputs.push_back(r < 0 ? Tensor() : frame->give(r));
  return outputs;
}

void Plan::run_step(Frame& frame, const Step& step, void* attrs, std::span<const ir::Binding> bindings, bool retain) const {
  constexpr int kInline = 8;
  TensorImpl* inline_operands[kInline];
  std::vector<TensorImpl*> more;
  TensorImpl** operands = inline_operands;
  if (step.operands > kInline) {
    more.resize(step.operands);
    operands = more.data();
  }
  const int32_t* r = registers_.data() + step.first_register;
  for (int i = 0; i < step.operands; ++i) operands[i] = r[i] < 0 ? nullptr : frame.at[static_cast<size_t>(r[i])];
  const int32_t* results = r + step.operands;
  Call call{step.op, {operands, step.operands}, attrs, step.where, step.results};
  switch (step.kind) {
    case Kind::kernel:
      return step.takes < 0 ? run_kernel(frame, step, call, results) : run_over(frame, step, call, operands, results[0]);
    case Kind::view: {
      TensorImpl* cell = frame.own[static_cast<size_t>(results[0])].get();
      step.op->layout(call, *cell);
      cell->set_storage(operands[0]->storage());
      frame.at[static_cast<size_t>(results[0])] = cell;
      return;
    }
    case Kind::host: {
      Tensor out[kMaxOutputs];
      step.op->run_on_host(call, out);
      for (int i = 0; i < step.results; ++i) frame.set_foreign(results[i], std::move(out[i]));
      return;
    }
    default: return run_bound(frame, step, bindings[static_cast<size_t>(step.handle)], retain);
  }
}

void Plan::run_kernel(Frame& frame, const Step& step, const Call& call, const int32_t* results) const {
  TensorImpl* outputs[kMaxOutputs];
  for (int i = 0; i < step.results; ++i) {
    outputs[i] = frame.own[static_cast<size_t>(results[i])].get();
    executor_.allocate(*outputs[i]);
    frame.at[static_cast<size_t>(results[i])] = outputs[i];
  }
  executor_.launch(step.kernel, call, outputs);
}

// The result has the register of an operand that dies here. Its memory is written over when only this run sees it; else the register's own
// cell gets memory of its own, and the operand is let go afterwards.
void Plan::run_over(Frame& frame, const Step& step, const Call& call, TensorImpl** operands, int32_t result) const {
  const auto r = static_cast<size_t>(result);
  TensorImpl* donor = operands[step.takes];
  TensorImpl* own = frame.own[r].get();
  if (donor->is_unshared() && donor->is_contiguous()) {
    executor_.launch(step.kernel, call, &donor);
    if (donor == own) return;
    own->alias(*donor);  // the memory changes hands, what else the cell carried does not
    frame.foreign[r].reset();
    frame.at[r] = own;
    return;
  }
  RefPtr<TensorImpl> kept;
  if (donor == own) {
    kept = TensorImpl::make();
    kept->alias(*own);
    for (int i = 0; i < step.operands; ++i)
      if (operands[i] == own) operands[i] = kept.get();
  }
  executor_.allocate(*own);
  executor_.launch(step.kernel, call, &own);
  frame.foreign[r].reset();
  frame.at[r] = own;
}

void Plan::run_bound(Frame& frame, const Step& step, const ir::Binding& b, bool retain) const {
  const int32_t* results = registers_.data() + step.first_register + step.operands;
  if (step.kind == Kind::unpack) {
    Slot& slot = b.record->slot[b.slot];
    return frame.set_foreign(results[0], retain ? unpack(*b.record, slot) : unpack_and_release(*b.record, slot));
  }
  if (step.kind == Kind::accumulate_grad) {
    const int32_t r = registers_[step.first_register];
    Tensor grad = frame.give(r);
    if (step.dying) frame.drop(r);  // then nobody else holds it, and the leaf may take it over
    return accumulate_into_leaf(*b.leaf, grad.impl());
  }
  if (step.kind == Kind::retain_grad) {
    return retain_gradient(*b.box, frame.give(registers_[step.first_register]));
  }
  Tensors operands, out(step.results);
  for (int i = 0; i < step.operands; ++i) {
    const int32_t r = registers_[step.first_register + static_cast<uint32_t>(i)];
    operands.push_back(r < 0 ? Tensor() : frame.give(r));
  }
  std::vector<TensorImpl*> cells;
  for (const Tensor& t : operands) cells.push_back(t.get());
  HookAttrs attrs{b.hook, b.leaf, step.results};
  if (b.hook->is_live()) run_hook(attrs, cells, out);
  else std::copy_n(operands.begin(), step.results, out.begin());
  for (int i = 0; i < step.results; ++i)
    if (out[static_cast<size_t>(i)].defined()) frame.set_foreign(results[i], std::move(out[static_cast<size_t>(i)]));
}

}  // namespace retrograd
