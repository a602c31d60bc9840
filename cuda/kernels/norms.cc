// Normalisation on a device: rows along the normalised dims; for the gradients of weight and bias, rows along all other
// dims than theirs. See cuda/kernels/norms_call.h.
#include "ops/norms.h"

#include <optional>

#include "cuda/kernels/elementwise.h"
#include "cuda/kernels/launchers.h"
#include "cuda/kernels/norms_call.h"
#include "cuda/kernels/rows.h"
#include "cuda/kernels/splits.h"
#include "cuda/kernels/table.h"
#include "cuda/scratch.h"

namespace retrograd::inline v0::cuda {
namespace {


// Sums of the parts of a row.
class Partials {
 public:
  Partials(const Call& call, const RowCut& cut, bool always = false) {
    if (always || cut.splits > 1)
      memory_.emplace(cut.rows * cut.splits * static_cast<int64_t>(sizeof(Pair)), call.op->name);
  }
  Pair* data() const { return memory_ ? static_cast<Pair*>(memory_->data()) : nullptr; }

 private:
  std::optional<Scratch> memory_;
};

void fill_zeros(const Call& call, TensorImpl& x) {
  if (x.numel().raw() > 0) fill(call, x, 0.0);
}

void normalize_kernel(const Call& call, TensorImpl* const* outputs) {
  const auto& attrs = call.attrs_as<ops::NormalizeAttrs>();
  const TensorImpl& x = *call.operands[0];
  const uint64_t along = mask_of(attrs.dim);
  NormCall c;
  c.x = row_side(x, along);
  c.y = row_side(*outputs[0], along);
  c.cut = cut_rows(c.x, kMostSplits);
  if (c.cut.rows == 0) return;
  if (c.cut.length == 0) {  // rows without elements have statistics, too, which are saved
    fill_zeros(call, *outputs[1]);
    return fill_zeros(call, *outputs[2]);
  }
  c.weight = row_side(call.operands[1], attrs.affine_dim, x.shape(), along);
  c.bias = row_side(call.operands[2], attrs.affine_dim, x.shape(), along);
  c.mean = outputs[1]->data();
  c.rstd = outputs[2]->data();
  c.eps = attrs.eps.to_double();
  c.center = attrs.center;
  const Partials partials(call, c.cut);
  c.partials = partials.data();
  Gpu& gpu = Gpu::current();
  gpu.launchers().norms->forward(c, gpu.compute().handle());
  gpu.launched(call.op->name);
}

void affine_gradients(const Call& call, TensorImpl* const* outputs) {
  const auto& attrs = call.attrs_as<ops::NormalizeBackward::Attrs>();
  const TensorImpl& x = *call.operands[1];
  if (x.numel().raw() == 0) {
    fill_zeros(call, *outputs[1]);
    return fill_zeros(call, *outputs[2]);
  }
  const uint64_t along = ~mask_of(attrs.affine_dim);
  AffineGradientCall c;
  c.g = row_side(*call.operands[0], along);
  c.x = row_side(x, along);
  c.mean = row_side(call.operands[2], x.shape(), along);
  c.rstd = row_side(call.operands[3], x.shape(), along);
  c.dweight = outputs[1]->data();
  c.dbias = outputs[2]->data();
  c.cut = cut_rows(c.x, kMostSplits);
  const Partials partials(call, c.cut, true);
  c.partials = partials.data();
  Gpu& gpu = Gpu::current();
  gpu.launchers().norms->affine(c, gpu.compute().handle());
  gpu.launched(call.op->name);
}

void normalize_backward_kernel(const Call& call, TensorImpl* const* outputs) {
  const auto& attrs = call.attrs_as<ops::NormalizeBackward::Attrs>();
  if (attrs.affine) affine_gradients(call, outputs);
  const TensorImpl& x = *call.operands[1];
  if (x.numel().raw() == 0) return;
  const uint64_t along = mask_of(attrs.dim);
  NormBackwardCall c;
  c.g = row_side(*call.operands[0], along);
  c.x = row_side(x, along);
  c.mean = row_side(*call.operands[2], along);
  c.rstd = row_side(*call.operands[3], along);
  c.weight = row_side(call.operands[4], attrs.affine_dim, x.shape(), along);
  c.dx = row_side(*outputs[0], along);
  c.center = attrs.center;
  c.cut = cut_rows(c.x, kMostSplits);
  const Partials partials(call, c.cut);
  c.partials = partials.data();
  Gpu& gpu = Gpu::current();
  gpu.launchers().norms->backward(c, gpu.compute().handle());
  gpu.launched(call.op->name);
}

}  // namespace

void add_norms_kernels(KernelTable& table) {
  table.set(&ops::info<ops::Normalize>, normalize_kernel);
  table.set(&ops::info<ops::NormalizeBackward>, normalize_backward_kernel);
}

}  // namespace retrograd::cuda
