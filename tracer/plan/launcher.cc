// See tracer/plan/launcher.h.
#include "tracer/plan/launcher.h"

#include "engine/bookkeeping.h"
#include "engine/region.h"
#include "engine/rule.h"
#include "tracer/plan/recordings.h"

namespace retrograd::inline v0 {
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

Slot& SavedSlots::slot(uint64_t record, uint32_t index) const {
  if (record >= kRegions) return regions[record - kRegions]->kept_slot(index);
  return records[record]->slot(static_cast<int>(index & ((1u << kPart) - 1)));
}

const Tensor* SavedSlots::part(uint64_t record, uint32_t index) const {
  const int32_t part = part_of(record, index);
  return part < 0 ? nullptr : payload_tensors(*slot(record, index).packed())[static_cast<size_t>(part)];
}

Tensor SavedSlots::value(uint64_t record, uint32_t index) const {
  if (record >= kRegions) return regions[record - kRegions]->kept(index);
  Record& r = *records[record];
  Slot& s = slot(record, index);
  if (const int32_t part = part_of(record, index); part >= 0)
    return unpack_part(r, s, static_cast<size_t>(part), !retain);
  return retain ? unpack(r, s) : unpack_and_release(r, s);
}

void Launcher::call(const Step& s) {
  constexpr int kInline = 8;
  TensorImpl* inline_operands[kInline];
  std::vector<TensorImpl*> more;
  TensorImpl** operands = inline_operands;
  if (s.operands > kInline) {
    more.resize(s.operands);
    operands = more.data();
  }
  const int32_t* r = program_.registers_of(s);
  Tensor unpacked;  // at most one operand is a folded slot
  for (int i = 0; i < s.operands; ++i) {
    if (r[i] < -1) {
      const FoldedSlot& folded = program_.folded_slot(r[i]);
      unpacked = slots_.value(folded.record, folded.slot);
      operands[i] = unpacked.get();
    } else {
      operands[i] = r[i] < 0 ? nullptr : frame_.at[static_cast<size_t>(r[i])];
    }
  }
  const ir::Node& node = program_.node(s);
  const Call call{node.op, {operands, s.operands}, attrs_of(s.attrs), node.where, s.results};
  if (s.kind == StepKind::view)
    view(s, call);
  else if (s.kind == StepKind::host)
    host(s, call);
  else if (s.takes < 0)
    kernel(s, call);
  else
    kernel_over(s, call, operands);
}

void Launcher::view(const Step& s, const Call& call) {
  const auto r = static_cast<size_t>(program_.registers_of(s)[s.operands]);
  TensorImpl* cell = frame_.own[r].get();
  call.op->layout(call, *cell);
  cell->set_storage(call.operands[0]->storage());
  frame_.at[r] = cell;
}

void Launcher::host(const Step& s, const Call& call) {
  TensorList out(s.results);
  call.op->run_on_host(call, out.data());
  take_results(s, out.data());
}

void Launcher::code(const Step& s, HostCode& code) {
  const int32_t* r = program_.registers_of(s);
  std::vector<TensorImpl*> operands;
  for (int i = 0; i < s.operands; ++i)
    operands.push_back(r[i] < 0 ? nullptr : frame_.at[static_cast<size_t>(r[i])]);
  TensorList out(s.results);
  code.run(operands, out.data());
  take_results(s, out.data());
}

void Launcher::take_results(const Step& s, Tensor* results) {
  const int32_t* r = program_.registers_of(s) + s.operands;
  for (int i = 0; i < s.results; ++i)
    if (results[i].defined()) frame_.set_foreign(r[i], std::move(results[i]).take());
}

std::span<std::byte> Launcher::scratch(int32_t number) const {
  if (number < 0 || program_.scratch[static_cast<size_t>(number)].offset < 0) return {};
  const ScratchPiece& piece = program_.scratch[static_cast<size_t>(number)];
  return {static_cast<std::byte*>(frame_.arena->data()) + piece.offset, static_cast<size_t>(piece.bytes)};
}

void Launcher::kernel(const Step& s, const Call& call) {
  const int32_t* results = program_.registers_of(s) + s.operands;
  TensorImpl* outputs[kMaxOutputs];
  for (int i = 0; i < s.results; ++i) {
    const auto r = static_cast<size_t>(results[i]);
    if (s.computes_into(i)) {
      outputs[i] = frame_.at[r];
      continue;
    }
    outputs[i] = frame_.own[r].get();
    give_memory(r);
    frame_.at[r] = outputs[i];
  }
  const int32_t piece = s.kind == StepKind::kernel ? s.scratch : -1;
  program_.executor.launch(kernel_of(s, call), call, outputs, scratch(piece));
}

// The result has the register of an operand that dies here. The operand's memory is overwritten if only this run sees
// it; else the register's own cell gets separate memory, and the operand is dropped after the launch.
void Launcher::kernel_over(const Step& s, const Call& call, TensorImpl** operands) {
  const auto r = static_cast<size_t>(program_.registers_of(s)[s.operands]);
  const Kernel kernel = kernel_of(s, call);
  TensorImpl* donor = operands[s.takes];
  TensorImpl* own = frame_.own[r].get();
  if (donor->is_unshared() && donor->is_contiguous()) {
    program_.executor.launch(kernel, call, &donor);
    if (donor == own) return;
    own->alias(*donor);  // moves the memory, but nothing else of the cell
  } else {
    RefPtr<TensorImpl> kept;
    if (donor == own) {
      kept = TensorImpl::make();
      kept->alias(*own);
      for (int i = 0; i < s.operands; ++i)
        if (operands[i] == own) operands[i] = kept.get();
    }
    program_.executor.allocate(*own);
    program_.executor.launch(kernel, call, &own);
  }
  frame_.foreign[r].reset();
  frame_.at[r] = own;
}

// The cell into which an output of a group is computed: in the memory of an input that it takes over, if only this
// run sees that memory; else in its own.
TensorImpl* Launcher::fused_output(const Step& s, size_t o, TensorImpl** inputs, RefPtr<TensorImpl>& kept) {
  const FusedStep& f = program_.fused_of(s);
  const auto r = static_cast<size_t>(program_.registers_of(s)[s.operands + o]);
  TensorImpl* own = frame_.own[r].get();
  if (f.into[o]) return frame_.at[r];
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

void Launcher::fused(const Step& s) {
  const FusedStep& f = program_.fused_of(s);
  const int32_t* r = program_.registers_of(s);
  const Few<TensorImpl*> inputs(s.operands), outputs(s.results);
  const Few<const void*> attrs(f.attrs.size());
  std::vector<RefPtr<TensorImpl>> kept(s.results);
  for (size_t i = 0; i < s.operands; ++i) inputs[i] = frame_.at[static_cast<size_t>(r[i])];
  for (size_t n = 0; n < f.attrs.size(); ++n) attrs[n] = attrs_of(f.attrs[n]);
  for (size_t o = 0; o < s.results; ++o) outputs[o] = fused_output(s, o, inputs.data(), kept[o]);
  if (!one_by_one.empty() && one_by_one[static_cast<size_t>(s.bound)])
    f.kernel->run_one_by_one(inputs.data(), outputs.data(), attrs.data());
  else
    f.kernel->run(inputs.data(), outputs.data(), attrs.data(), scratch(f.scratch));
  for (size_t o = 0; o < s.results; ++o) {
    if (f.into[o]) continue;
    const auto out = static_cast<size_t>(r[s.operands + o]);
    TensorImpl* own = frame_.own[out].get();
    if (outputs[o] != own) own->alias(*outputs[o]);
    frame_.foreign[out].reset();
    frame_.at[out] = own;
  }
}

// The register may have held a view before.
void Launcher::put_memory(size_t r) {
  TensorImpl& own = *frame_.own[r];
  own.set_storage(frame_.recordings->memory[r]);
  own.set_storage_offset(0);
  contiguous_strides(own.shape(), own.mutable_strides());
}

void Launcher::give_memory(size_t r) {
  if (recording)
    put_memory(r);
  else
    program_.executor.allocate(*frame_.own[r]);
}

}  // namespace retrograd
