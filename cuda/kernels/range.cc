// check_range on a device: the first value out of range becomes the caller's error when the host next waits. See
// cuda/kernels/range_call.h.
#include "cuda/gpu.h"
#include "cuda/kernels/launchers.h"
#include "cuda/kernels/range_call.h"
#include "cuda/kernels/rows.h"
#include "cuda/kernels/table.h"
#include "ops/likelihood_losses.h"

namespace retrograd::inline v0::cuda {
namespace {

void check_range(const Call& call, TensorImpl* const* outputs) {
  const auto& attrs = call.attrs_as<ops::CheckRange::Attrs>();
  Gpu& gpu = Gpu::current();
  const RangeCall c{row_side(*call.operands[0], ~uint64_t{0}),
                    attrs.low.to_double(),
                    attrs.high.to_double(),
                    attrs.refuses_nan,
                    static_cast<bool*>(outputs[0]->data()),
                    gpu.faults().note(*call.op)};
  gpu.launchers().range->check(c, gpu.compute().handle());
  gpu.launched(call.op->name);
}

}  // namespace

void add_range_kernels(KernelTable& table) { table.set(&ops::info<ops::CheckRange>, check_range); }

}  // namespace retrograd::cuda
