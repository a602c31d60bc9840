// Ops that rearrange elements, on a device: cat, flip, tril, triu, pad, pad_backward.
//
// A region is a cell that shows a part of another's memory: cat copies into regions of its result, flip from a region
// with negative strides. The others have kernels: cuda/kernels/rearrange_call.h.
#include "ops/rearrange.h"

#include <algorithm>

#include "cuda/kernels/elementwise.h"
#include "cuda/kernels/launchers.h"
#include "cuda/kernels/rearrange_call.h"
#include "cuda/kernels/table.h"
#include "ops/join.h"

namespace retrograd::inline v0::cuda {
namespace {

void cat(const Call& call, TensorImpl* const* outputs) {
  const int64_t dim = call.attrs_as<ops::Cat::Attrs>().dim;
  const RefPtr<TensorImpl> part = TensorImpl::make();
  part->alias(*outputs[0]);
  for (const TensorImpl* x : call.operands) {
    const Dim length = x->shape()[static_cast<int>(dim)];
    part->mutable_shape()[static_cast<int>(dim)] = length;
    convert_copy(*x, *part);
    part->set_storage_offset(part->storage_offset() + length.raw() * part->strides()[dim]);
  }
}

void flip(const Call& call, TensorImpl* const* outputs) {
  const RefPtr<TensorImpl> region = TensorImpl::make();
  region->alias(*call.operands[0]);
  int64_t offset = region->storage_offset();
  for (int64_t d : call.attrs_as<ops::Flip::Attrs>().dims) {
    int64_t& stride = region->mutable_strides()[d];
    const int64_t n = region->shape()[static_cast<int>(d)].raw();
    offset += n > 0 ? (n - 1) * stride : 0;
    stride = -stride;
  }
  region->set_storage_offset(offset);
  convert_copy(*region, *outputs[0]);
}

template <bool upper>
void triangle(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl& x = *call.operands[0];
  TriangleCall c;
  c.x = x.data();
  c.out = outputs[0]->data();
  c.width = static_cast<int>(element_size(x.dtype()));
  for (int d = 0; d < x.rank(); ++d) c.dims.add(x.shape()[d].raw(), {x.strides()[d]});
  c.dims.finish();
  if (c.dims.numel == 0) return;
  c.rows = x.shape()[x.rank() - 2].raw();
  c.columns = x.shape().back().raw();
  c.diagonal = std::clamp(call.attrs_as<ops::TriangleAttrs>().diagonal, -c.rows, c.columns);
  c.upper = upper;
  Gpu& gpu = Gpu::current();
  gpu.launchers().rearrange->triangle(c, gpu.compute().handle());
  gpu.launched(call.op->name);
}

void add_dim(PadCall& c, const PadDim& next, bool is_padded, bool& merges) {
  PadDim* const last = c.rank > 0 ? &c.dim[c.rank - 1] : nullptr;
  if (last && merges && !is_padded && last->stride == next.large * next.stride) {
    last->small *= next.small;
    last->large *= next.large;
    last->kept = last->small;
    last->stride = next.stride;
  } else {
    c.dim[c.rank++] = next;
  }
  merges = !is_padded;
}

// `read`: the operand, which is the small or the large tensor.
PadCall pad_call(const ops::PadAttrs& a, const TensorImpl& read, TensorImpl& out, const Shape& small,
                 const Shape& large) {
  PadCall c;
  c.x = read.data();
  c.out = out.data();
  c.element = static_cast<Element>(read.dtype());
  c.width = static_cast<int>(element_size(read.dtype()));
  c.mode = a.mode == ops::PadAttrs::reflect     ? PadMode::reflect
           : a.mode == ops::PadAttrs::replicate ? PadMode::replicate
                                                : PadMode::circular;
  c.numel = out.numel().raw();
  bool merges = false;
  for (int d = 0; d < small.rank(); ++d) {
    const int64_t n = small[d].raw(), first = std::max<int64_t>(-a.before[d], 0),
                  kept = n - first - std::max<int64_t>(-a.after[d], 0);
    add_dim(c, {n, large[d].raw(), a.before[d], first, kept, read.strides()[d]},
            a.before[d] != 0 || a.after[d] != 0, merges);
  }
  if (c.rank == 0) c.dim[c.rank++] = {1, 1, 0, 0, 1, 1};
  return c;
}

void pad(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl& x = *call.operands[0];
  if (outputs[0]->numel().raw() == 0) return;
  const PadCall c = pad_call(call.attrs_as<ops::PadAttrs>(), x, *outputs[0], x.shape(), outputs[0]->shape());
  Gpu& gpu = Gpu::current();
  gpu.launchers().rearrange->pad(c, gpu.compute().handle());
  gpu.launched(call.op->name);
}

void pad_backward(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl& g = *call.operands[0];
  if (outputs[0]->numel().raw() == 0) return;
  const PadCall c = pad_call(call.attrs_as<ops::PadAttrs>(), g, *outputs[0], outputs[0]->shape(), g.shape());
  Gpu& gpu = Gpu::current();
  const RearrangeLaunchers& all = *gpu.launchers().rearrange;
  const ScalarType type = compute_type(g.dtype());
  (type == kFloat32   ? all.pad_backward_f32
   : type == kFloat64 ? all.pad_backward_f64
                      : all.pad_backward_i64)(c, gpu.compute().handle());
  gpu.launched(call.op->name);
}

}  // namespace

void add_rearrange_kernels(KernelTable& table) {
  table.set(&ops::info<ops::Cat>, cat);
  table.set(&ops::info<ops::Flip>, flip);
  table.set(&ops::info<ops::Tril>, triangle<false>);
  table.set(&ops::info<ops::Triu>, triangle<true>);
  table.set(&ops::info<ops::Pad>, pad);
  table.set(&ops::info<ops::PadBackward>, pad_backward);
}

}  // namespace retrograd::cuda
