// Kernel of cat: each operand is copied into its part of the output.
//
// A part is a cell that shows the output's memory: it has the output's strides, the operand's size along the
// dim, and an offset that grows from operand to operand. Copies are those of cpu/kernels/copy.cc and run in
// parallel within an operand; operands follow one another. There is no temporary memory.
#include "ops/join.h"

#include "cpu/kernels/elementwise.h"
#include "cpu/kernels/table.h"

namespace retrograd::inline v0::cpu {
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
