// Launches: one step of a plan as a call of a kernel, of a fused kernel, of a view's layout or of an op that runs on the host. See
// tracer/plan.h; start reading at Run::call().
//
// Where a result goes: into memory that its register holds already (the arena, a written input), over an operand that dies here and that only
// this run sees, or into new memory of the register's own cell.
#include "engine/rule.h"
#include "tracer/plan_run.h"

namespace retrograd {
namespace {

// n pointers, on the stack if they are few.
template <class T>
class Few {
 public:
  explicit Few(size_t n) {
    if (n <= std::size(few_)) return;
    many_.resize(n);
    data_ = many_.data();
  }
  Few(const Few&) = delete;
  T* data() const { return data_; }
  T& operator[](size_t i) const { return data_[i]; }

 private:
  T few_[64];
  std::vector<T> many_;
  T* data_ = few_;
};

}  // namespace

void Plan::Run::call(const Step& s, void* attrs) {
  constexpr int kInline = 8;
  TensorImpl* inline_operands[kInline];
  std::vector<TensorImpl*> more;
  TensorImpl** operands = inline_operands;
  if (s.operands > kInline) {
    more.resize(s.operands);
    operands = more.data();
  }
  const int32_t* r = registers(s);
  Tensor unpacked;  // at most one operand is a folded slot
  for (int i = 0; i < s.operands; ++i) {
    if (r[i] < -1) {
      const SlotRef& ref = plan.folded_[static_cast<size_t>(-2 - r[i])];
      unpacked = value_of_slot(ref.place, ref.slot);
      operands[i] = unpacked.get();
    } else {
      operands[i] = r[i] < 0 ? nullptr : frame->at[static_cast<size_t>(r[i])];
    }
  }
  const int32_t* results = r + s.operands;
  const ir::Node& node = plan.graph_.nodes()[s.node];
  const Call call{node.op, {operands, s.operands}, attrs, node.where, s.results};
  if (s.kind == Kind::view) {
    TensorImpl* cell = frame->own[static_cast<size_t>(results[0])].get();
    node.op->layout(call, *cell);
    cell->set_storage(operands[0]->storage());
    frame->at[static_cast<size_t>(results[0])] = cell;
  } else if (s.kind == Kind::host) {
    TensorList out(s.results);
    node.op->run_on_host(call, out.data());
    for (int i = 0; i < s.results; ++i)
      if (out[i].defined()) frame->set_foreign(results[i], std::move(out[i]).take());
  } else if (s.takes < 0) {
    kernel(s, call, results);
  } else {
    kernel_over(s, call, operands, results[0]);
  }
}

std::span<std::byte> Plan::Run::room(int32_t number) const {
  if (number < 0 || plan.rooms_[static_cast<size_t>(number)].offset < 0) return {};
  const Room& r = plan.rooms_[static_cast<size_t>(number)];
  return {static_cast<std::byte*>(frame->arena->data()) + r.offset, static_cast<size_t>(r.bytes)};
}

void Plan::Run::kernel(const Step& s, const Call& call, const int32_t* results) {
  TensorImpl* outputs[kMaxOutputs];
  for (int i = 0; i < s.results; ++i) {
    const auto r = static_cast<size_t>(results[i]);
    if (s.computes_into(i)) {
      outputs[i] = frame->at[r];
      continue;
    }
    outputs[i] = frame->own[r].get();
    give_memory(r);
    frame->at[r] = outputs[i];
  }
  plan.executor_.launch(kernel_of(s, call), call, outputs, room(s.kind == Kind::kernel ? s.room : -1));
}

// The result has the register of an operand that dies here. Its memory is written over when only this run sees it; else the register's own
// cell gets memory of its own, and the operand is let go afterwards.
void Plan::Run::kernel_over(const Step& s, const Call& call, TensorImpl** operands, int32_t result) {
  const auto r = static_cast<size_t>(result);
  const Kernel kernel = kernel_of(s, call);
  TensorImpl* donor = operands[s.takes];
  TensorImpl* own = frame->own[r].get();
  if (donor->is_unshared() && donor->is_contiguous()) {
    plan.executor_.launch(kernel, call, &donor);
    if (donor == own) return;
    own->alias(*donor);  // the memory changes hands, what else the cell carried does not
  } else {
    RefPtr<TensorImpl> kept;
    if (donor == own) {
      kept = TensorImpl::make();
      kept->alias(*own);
      for (int i = 0; i < s.operands; ++i)
        if (operands[i] == own) operands[i] = kept.get();
    }
    plan.executor_.allocate(*own);
    plan.executor_.launch(kernel, call, &own);
  }
  frame->foreign[r].reset();
  frame->at[r] = own;
}

// Where an output of a group is computed: in the memory of an input that it takes over, if only this run sees that; else in its own.
TensorImpl* Plan::Run::fused_output(const Step& s, size_t o, TensorImpl** inputs, RefPtr<TensorImpl>& kept) {
  const Fused& f = plan.fused_[static_cast<size_t>(s.bound)];
  const auto r = static_cast<size_t>(registers(s)[s.operands + o]);
  TensorImpl* own = frame->own[r].get();
  if (f.into[o]) return frame->at[r];
  if (f.takes[o] >= 0) {
    TensorImpl*& donor = inputs[f.takes[o]];
    if (donor->is_unshared() && donor->is_contiguous()) return donor;
    if (donor == own) {
      kept = TensorImpl::make();
      kept->alias(*own);
      donor = kept.get();
    }
  }
  give_memory(r);
  return own;
}

void Plan::Run::fused(const Step& s) {
  const Fused& f = plan.fused_[static_cast<size_t>(s.bound)];
  const int32_t* r = registers(s);
  const Few<TensorImpl*> inputs(s.operands), outputs(s.results);
  const Few<const void*> attrs(f.attrs.size());
  std::vector<RefPtr<TensorImpl>> kept(s.results);
  for (size_t i = 0; i < s.operands; ++i) inputs[i] = frame->at[static_cast<size_t>(r[i])];
  for (size_t n = 0; n < f.attrs.size(); ++n) attrs[n] = attrs_of(f.attrs[n]);
  for (size_t o = 0; o < s.results; ++o) outputs[o] = fused_output(s, o, inputs.data(), kept[o]);
  if (!groups_one_by_one.empty() && groups_one_by_one[static_cast<size_t>(s.bound)])
    f.kernel->run_one_by_one(inputs.data(), outputs.data(), attrs.data());
  else
    f.kernel->run(inputs.data(), outputs.data(), attrs.data(), room(f.room));
  for (size_t o = 0; o < s.results; ++o) {
    if (f.into[o]) continue;
    const auto out = static_cast<size_t>(r[s.operands + o]);
    TensorImpl* own = frame->own[out].get();
    if (outputs[o] != own)
      own->alias(*outputs[o]);  // the memory changes hands, what else the cell carried does not
    frame->foreign[out].reset();
    frame->at[out] = own;
  }
}

}  // namespace retrograd
