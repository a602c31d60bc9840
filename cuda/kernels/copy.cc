// Copies and constants on a device: clone, to another dtype, between host and device, full.
//
// Dense tensors of one dtype are copied as memory. Between host and device both sides are dense: the public function
// ensures that for the operand, and the executor allocates the result.
#include "ops/copy.h"
#include "cuda/executor.h"
#include "cuda/kernels/elementwise.h"
#include "cuda/kernels/elementwise_call.h"
#include "cuda/kernels/launchers.h"
#include "cuda/kernels/table.h"
#include "ops/full.h"
#include "ops/shape_ops.h"

namespace retrograd::inline v0::cuda {
namespace {

void copy_kernel(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl& from = *call.operands[0];
  TensorImpl& to = *outputs[0];
  if (from.dtype() == to.dtype() && from.is_contiguous() && to.is_contiguous())
    return Gpu::current().copy(to.data(), from.data(), bytes_of(to.type()));
  convert_copy(from, to);
}

// (old, source): gives the source.
void replace_kernel(const Call& call, TensorImpl* const* outputs) {
  Call of_source = call;
  of_source.operands = call.operands.subspan(1);
  copy_kernel(of_source, outputs);
}

void to_device_kernel(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl& from = *call.operands[0];
  TensorImpl& to = *outputs[0];
  RG_ASSERT(from.is_contiguous() && to.is_contiguous());
  Gpu& here = Gpu::current();
  const int64_t bytes = bytes_of(to.type());
  if (from.device() == kCPU) return here.upload(to.data(), from.data(), bytes);
  if (to.device() == kCPU) return here.download(to.data(), from.data(), bytes);
  if (from.device().index() == here.index()) return here.copy(to.data(), from.data(), bytes);
  gpu_of(from.device().index()).synchronize();
  here.copy(to.data(), from.data(), bytes);
  // Then the device of the operand may free its memory.
  here.compute().synchronize("copying between devices");
}

void full_kernel(const Call& call, TensorImpl* const* outputs) {
  fill(call, *outputs[0], call.attrs_as<ops::Full::Attrs>().value);
}

}  // namespace

void add_copy_kernels(KernelTable& table) {
  table.set(&ops::info<ops::Clone>, copy_kernel);
  table.set(&ops::info<ops::To>, copy_kernel);
  table.set(&ops::info<ops::Copy>, replace_kernel);
  table.set(&ops::info<ops::ToDevice>, to_device_kernel);
  table.set(&ops::info<ops::Full>, full_kernel);
}

}  // namespace retrograd::cuda
