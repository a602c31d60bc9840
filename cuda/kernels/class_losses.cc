// Losses over classes on a device. See cuda/kernels/class_losses_call.h.
#include "cuda/gpu.h"
#include "cuda/kernels/class_losses_call.h"
#include "cuda/kernels/launchers.h"
#include "cuda/kernels/rows.h"
#include "cuda/kernels/table.h"
#include "ops/losses.h"

namespace retrograd::inline v0::cuda {
namespace {

// `x` is the operand with the classes.
ClassLossCall call_of(const Call& call, const TensorImpl& x, const TensorImpl& target) {
  const auto& attrs = call.attrs_as<ops::ClassLossAttrs>();
  ClassLossCall c;
  c.ignored = attrs.ignore_index;
  c.target = row_side(target, 0);
  c.cut = cut_rows(row_side(x, uint64_t{1} << attrs.dim), 1);
  return c;
}

uint64_t classes(const Call& call) { return uint64_t{1} << call.attrs_as<ops::ClassLossAttrs>().dim; }

void start(const Call& call, ClassLossLauncher ClassLossLaunchers::*which, const ClassLossCall& c) {
  if (c.cut.rows == 0) return;
  Gpu& gpu = Gpu::current();
  (gpu.launchers().class_losses->*which)(c, gpu.compute().handle());
  gpu.launched(call.op->name);
}

void nll_kernel(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl &x = *call.operands[0], &target = *call.operands[1];
  ClassLossCall c = call_of(call, x, target);
  c.note = Gpu::current().faults().note(*call.op);
  c.x = row_side(x, classes(call));
  c.loss = outputs[0]->data();
  start(call, &ClassLossLaunchers::nll, c);
}

void nll_backward_kernel(const Call& call, TensorImpl* const* outputs) {
  ClassLossCall c = call_of(call, *outputs[0], *call.operands[1]);
  c.g = row_side(*call.operands[0], 0);
  c.dx = row_side(*outputs[0], classes(call));
  if (c.cut.length > 0) start(call, &ClassLossLaunchers::nll_backward, c);
}

void cross_entropy_kernel(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl &x = *call.operands[0], &target = *call.operands[1];
  ClassLossCall c = call_of(call, x, target);
  c.note = Gpu::current().faults().note(*call.op);
  c.x = row_side(x, classes(call));
  c.loss = outputs[0]->data();
  c.stats_out = outputs[1]->data();
  start(call, &ClassLossLaunchers::cross_entropy, c);
}

void cross_entropy_backward_kernel(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl& x = *call.operands[1];
  ClassLossCall c = call_of(call, x, *call.operands[2]);
  c.g = row_side(*call.operands[0], 0);
  c.x = row_side(x, classes(call));
  c.stats = row_side(*call.operands[3], 0);
  c.dx = row_side(*outputs[0], classes(call));
  if (c.cut.length > 0) start(call, &ClassLossLaunchers::cross_backward, c);
}

}  // namespace

void add_class_losses_kernels(KernelTable& table) {
  table.set(&ops::info<ops::Nll>, nll_kernel);
  table.set(&ops::info<ops::NllBackward>, nll_backward_kernel);
  table.set(&ops::info<ops::CrossEntropy>, cross_entropy_kernel);
  table.set(&ops::info<ops::CrossEntropyBackward>, cross_entropy_backward_kernel);
}

}  // namespace retrograd::cuda
