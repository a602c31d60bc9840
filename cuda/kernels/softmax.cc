// Softmax on a device: rows along a dim. See cuda/kernels/softmax_call.h.
#include "ops/softmax.h"

#include "cuda/gpu.h"
#include "cuda/kernels/launchers.h"
#include "cuda/kernels/rows.h"
#include "cuda/kernels/softmax_call.h"
#include "cuda/kernels/table.h"

namespace retrograd::inline v0::cuda {
namespace {

template <SoftmaxKind kind>
void kernel(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl& out = *outputs[0];
  const uint64_t along = out.rank() ? uint64_t{1} << call.attrs_as<ops::SoftmaxAttrs>().dim : 0;
  SoftmaxCall c;
  c.x = row_side(*call.operands[0], along);
  if (call.operands.size() > 1) c.y = row_side(*call.operands[1], along);
  c.out = row_side(out, along);
  c.cut = cut_rows(c.out, 1);
  if (c.cut.rows == 0 || c.cut.length == 0) return;
  Gpu& gpu = Gpu::current();
  gpu.launchers().softmax->of_kind[static_cast<int>(kind)](c, gpu.compute().handle());
  gpu.launched(call.op->name);
}

}  // namespace

void add_softmax_kernels(KernelTable& table) {
  using enum SoftmaxKind;
  table.set(&ops::info<ops::Softmax>, kernel<softmax>);
  table.set(&ops::info<ops::LogSoftmax>, kernel<log_softmax>);
  table.set(&ops::info<ops::SoftmaxBackward>, kernel<softmax_backward>);
  table.set(&ops::info<ops::LogSoftmaxBackward>, kernel<log_softmax_backward>);
}

}  // namespace retrograd::cuda
