// Kernel of cat: each operand is copied into its part of the output.
#include "ops/join.h"

#include "cpu/kernels/elementwise.h"
#include "cpu/kernels/table.h"

namespace retrograd::cpu {
namespace {

void cat(const Call& call, TensorImpl* const* outputs) {
  TensorImpl& out = *outputs[0];
  const int64_t dim = call.attrs_as<ops::Cat::Attrs>().dim;
  RefPtr<TensorImpl> part = TensorImpl::make();
  part->alias(out);
  for (const TensorImpl* x : call.operands) {
    const Dim length = x->shape()[static_cast<int>(dim)];
    part->mutable_shape()[static_cast<int>(dim)] = length;
    convert_copy(*x, *part);
    part->set_storage_offset(part->storage_offset() + length.raw() * part->strides()[dim]);
  }
}

}  // namespace

void add_join_kernels(KernelTable& table) { table.set(&ops::info<ops::Cat>, cat); }

}  // namespace retrograd::cpu
