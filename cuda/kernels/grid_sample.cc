// grid_sample and its derivatives on a device. See cuda/kernels/grid_sample_call.h.
#include "ops/grid_sample.h"

#include <algorithm>
#include <optional>

#include "cuda/kernels/dense.h"
#include "cuda/kernels/grid_sample_call.h"
#include "cuda/kernels/launchers.h"
#include "cuda/kernels/table.h"

namespace retrograd::inline v0::cuda {
namespace {

// The data of a row-major operand, copied if necessary.
const void* brought(DenseTensor& x) {
  x.bring();
  return x.here().data();
}

// `picture` has the sizes of what is read, or added to.
GridSampleCall grid_call(const Call& call, const TensorImpl& picture, const TensorImpl& grid) {
  const auto& a = call.attrs_as<ops::GridSampleAttrs>();
  GridSampleCall c;
  c.element = static_cast<Element>(picture.dtype());
  c.mode = static_cast<ops::GridMode>(a.mode);
  c.padding = static_cast<ops::GridPadding>(a.padding);
  c.align_corners = a.align_corners;
  c.dims = grid.rank() - 2;
  c.batch = picture.shape()[0].raw();
  c.channels = picture.shape()[1].raw();
  c.points = 1;
  for (int i = 0; i < c.dims; ++i) {
    c.order[i] = static_cast<int>(std::min<int64_t>(a.order[i], ops::kMostGridOrder));
    c.points *= grid.shape()[i + 1].raw();
    c.size[3 - c.dims + i] = picture.shape()[i + 2].raw();
  }
  return c;
}

void start(const Call& call, const GridSampleCall& c, GridSampleLauncher GridSampleLaunchers::*which) {
  Gpu& gpu = Gpu::current();
  (gpu.launchers().grid_sample->*which)(c, gpu.compute().handle());
  gpu.launched(call.op->name);
}

void grid_sample(const Call& call, TensorImpl* const* outputs) {
  if (outputs[0]->numel().raw() == 0) return;
  DenseTensor x(*call.operands[0], call.op->name), grid(*call.operands[1], call.op->name);
  GridSampleCall c = grid_call(call, *call.operands[0], *call.operands[1]);
  c.x = brought(x);
  c.grid = brought(grid);
  c.out = outputs[0]->data();
  start(call, c, &GridSampleLaunchers::sample);
}

// Sums are made in the computed type, and then rounded.
void grid_sample_transpose(const Call& call, TensorImpl* const* outputs) {
  TensorImpl& out = *outputs[0];
  if (out.numel().raw() == 0) return;
  DenseTensor g(*call.operands[0], call.op->name), grid(*call.operands[1], call.op->name);
  GridSampleCall c = grid_call(call, out, *call.operands[1]);
  c.g = brought(g);
  c.grid = brought(grid);
  const ScalarType wide = compute_type(out.dtype());
  if (wide == out.dtype()) {
    c.out = out.data();
    return start(call, c, &GridSampleLaunchers::transpose);
  }
  const Scratch room(out.numel().raw() * static_cast<int64_t>(element_size(wide)), call.op->name);
  const RefPtr<TensorImpl> sums = TensorImpl::make();
  sums->set_type(wide, out.device(), out.shape());
  contiguous_strides(out.shape(), sums->mutable_strides());
  sums->set_storage(Storage::wrap(room.data(), 0, nullptr, nullptr));
  c.out = room.data();
  start(call, c, &GridSampleLaunchers::transpose);
  convert_copy(*sums, out);
}

void grid_sample_slope(const Call& call, TensorImpl* const* outputs) {
  if (outputs[0]->numel().raw() == 0) return;
  DenseTensor g(*call.operands[0], call.op->name), x(*call.operands[1], call.op->name),
      grid(*call.operands[2], call.op->name);
  GridSampleCall c = grid_call(call, *call.operands[1], *call.operands[2]);
  c.g = brought(g);
  c.x = brought(x);
  c.grid = brought(grid);
  c.out = outputs[0]->data();
  start(call, c, &GridSampleLaunchers::slope);
}

}  // namespace

void add_grid_sample_kernels(KernelTable& table) {
  table.set(&ops::info<ops::GridSample>, grid_sample);
  table.set(&ops::info<ops::GridSampleTranspose>, grid_sample_transpose);
  table.set(&ops::info<ops::GridSampleSlope>, grid_sample_slope);
}

}  // namespace retrograd::cuda
