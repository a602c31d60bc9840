// The CPU executor: kernels found in a table, run synchronously on the calling thread and the pool.
//
// CpuExecutor holds the KernelTable (cpu/kernels/table.h), which the constructor fills by the add_..._kernels() of
// all families; then it is immutable. launch() runs one call. measure_kernel() finds the temporary memory of a call:
// the kernel runs on cells without data up to the point where it has requested all its memory (cpu/scratch.h). A call
// whose results are all empty is not run, unless its op must check values. Start reading at CpuExecutor::launch.
#include <algorithm>

#include "cpu/fused/fused.h"
#include "cpu/fused/fused_draft.h"
#include "cpu/kernels/table.h"
#include "cpu/levels.h"
#include "cpu/scratch_check.h"
#include "engine/never_destroyed.h"
#include "engine/runner.h"

namespace retrograd::inline v0 {
namespace cpu {
namespace {

// `x` without its data; null for null.
RefPtr<TensorImpl> outline(const TensorImpl* x, const RefPtr<Storage>& nowhere) {
  if (!x) return {};
  RefPtr<TensorImpl> cell = TensorImpl::make();
  cell->alias(*x);
  cell->set_storage(nowhere);
  return cell;
}

int64_t measure_kernel(Kernel kernel, const Call& call, TensorImpl* const* outputs) {
  const RefPtr<Storage> nowhere =
      Storage::wrap(kNowhere, INT64_MAX, nullptr, nullptr);  // large enough for any view
  std::vector<RefPtr<TensorImpl>> cells;
  for (const TensorImpl* x : call.operands) cells.push_back(outline(x, nowhere));
  for (int i = 0; i < call.outputs; ++i) cells.push_back(outline(outputs[i], nowhere));
  std::vector<TensorImpl*> pointers;
  for (const RefPtr<TensorImpl>& cell : cells) pointers.push_back(cell.get());
  Call measured = call;
  measured.operands = std::span(pointers).first(call.operands.size());
  return measure_scratch([&] { kernel(measured, pointers.data() + call.operands.size()); });
}

// Whether all results are empty, and also the operands whose values an op might refuse. A kernel would iterate over
// all rows of [2^40, 0].
bool is_idle(const Call& call, TensorImpl* const* outputs) {
  const auto is_empty = [](const TensorImpl* x) { return !x || x->numel().raw() == 0; };
  if (!std::all_of(outputs, outputs + call.outputs, is_empty)) return false;
  return !call.op->is(Trait::checks) || std::ranges::all_of(call.operands, is_empty);
}

class CpuExecutor final : public Executor {
 public:
  CpuExecutor() {
    if (!has_level())
      fail(Category::unsupported, "retrograd",
           "this program was built for the instruction set of another machine; --//tools:levels=all builds for all");
#define RG_ADD(name) add_##name##_kernels(table_);
    RG_CPU_FAMILIES(RG_ADD)
#undef RG_ADD
  }
  std::string_view name() const override { return "cpu"; }
  Kernel find(const OpInfo* op) const override { return table_.find(op).kernel; }
  SpanKernel find_span(const OpInfo* op, ScalarType dtype) const override {
    const Spans* spans = table_.find(op).spans;
    if (!spans || spans->boolean) return nullptr;
    return dtype == kFloat32 ? spans->f32 : dtype == kFloat64 ? spans->f64 : nullptr;
  }
  FusedRole fused_role(const OpInfo& op, const void* attrs, std::span<const TensorType> operands,
                       const TensorType& result) const override {
    return cpu::fused_role(table_, op, attrs, operands, result);
  }
  std::unique_ptr<FusedKernel> fuse(const FusedGroup& group) const override {
    return fuse_group(group, table_);
  }
  bool multiplies_fast(ScalarType dtype) const override { return dtype == kBFloat16 && has_bfloat16(); }
  void allocate(TensorImpl& cell) override { cell.allocate(); }
  bool has_scratch(const OpInfo* op) const override { return table_.find(op).has_scratch; }
  int64_t scratch_bytes(Kernel kernel, const Call& call, TensorImpl* const* outputs) override {
    return table_.find(call.op).has_scratch ? measure_kernel(kernel, call, outputs) : 0;
  }
  void launch(Kernel kernel, const Call& call, TensorImpl* const* outputs,
              std::span<std::byte> scratch) override {
    if (const auto& memory = outputs[0]->storage(); memory && memory->nbytes() == 0) [[unlikely]]
      if (is_idle(call, outputs)) return;
    if (scratch_is_checked.load(std::memory_order_relaxed)) [[unlikely]]
      return run_checked(call.op->name, scratch_bytes(kernel, call, outputs), [&] { kernel(call, outputs); });
    if (scratch.empty()) return kernel(call, outputs);
    const ScratchArea area(scratch);
    kernel(call, outputs);
  }

 private:
  KernelTable table_;
};

}  // namespace
}  // namespace cpu

Executor& cpu_executor() { return detail::never_destroyed<cpu::CpuExecutor>(); }

}  // namespace retrograd
