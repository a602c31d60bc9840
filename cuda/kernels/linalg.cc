// Ops that a device leaves to the CPU: factorisations of matrices and what is made of them.
//
// Operands go to the CPU, its kernel runs, results come back: two waits of the host for the device. These are
// chains of small dependent steps, of which a device has a library (cuSOLVER), not kernels that are read in a
// page; none is linked. Errors are the CPU's own, at once.
#include <vector>

#include "cuda/gpu.h"
#include "cuda/kernels/table.h"
#include "engine/runner.h"
#include "ops/linalg.h"
#include "ops/shape_ops.h"

namespace retrograd::cuda {
namespace {

Tensor emit_one(const OpInfo& op, const Tensor& x, void* attrs, SourceLocation where) {
  TensorImpl* operand = x.get();
  Tensor result;
  eager_runner().emit({&op, {&operand, 1}, attrs, where, 1}, &result);
  return result;
}

Tensor on_cpu(TensorImpl* x, SourceLocation where) {
  if (!x) return {};
  Tensor dense{RefPtr<TensorImpl>(x)};
  if (!x->is_contiguous()) dense = emit_one(ops::info<ops::Clone>, dense, nullptr, where);
  ops::ToDevice::Attrs there{kCPU};
  return emit_one(ops::info<ops::ToDevice>, dense, &there, where);
}

void cpu_kernel(const Call& call, TensorImpl* const* outputs) {
  Tensors held;
  std::vector<TensorImpl*> operands, results;
  for (TensorImpl* x : call.operands) operands.push_back(held.emplace_back(on_cpu(x, call.where)).get());
  Executor& cpu = cpu_executor();
  for (int i = 0; i < call.outputs; ++i) {
    TensorImpl* result = results.emplace_back(held.emplace_back(TensorImpl::make()).get());
    result->set_type(outputs[i]->dtype(), kCPU, outputs[i]->shape());
    cpu.allocate(*result);
  }
  Call there = call;
  there.operands = operands;
  cpu.launch(cpu.find(call.op), there, results.data());
  for (int i = 0; i < call.outputs; ++i) {
    RG_ASSERT(outputs[i]->is_contiguous());
    Gpu::current().upload(
        outputs[i]->data(), results[static_cast<size_t>(i)]->data(),
        outputs[i]->numel().raw() * static_cast<int64_t>(element_size(outputs[i]->dtype())));
  }
}

template <class... Ops>
void set_all(KernelTable& table, ops::OpList<Ops...>) {
  (table.set(&ops::info<Ops>, cpu_kernel), ...);
}

}  // namespace

void add_linalg_kernels(KernelTable& table) { set_all(table, ops::LinalgOps{}); }
bool is_left_to_cpu(Kernel kernel) { return kernel == cpu_kernel; }

}  // namespace retrograd::cuda
