// See tracer/function/opaque_value.h.
#include "tracer/function/opaque_value.h"

namespace retrograd::inline v0 {
namespace {

void drop_content(void* content) { delete static_cast<std::shared_ptr<void>*>(content); }

}  // namespace

Tensor shown(TensorImpl& x) { return x.requires_grad ? Tensor(RefPtr<TensorImpl>(&x)) : seen(x); }

Tensor seen(const TensorImpl& x) {
  RefPtr<TensorImpl> cell = TensorImpl::make();
  cell->alias(x);
  return Tensor(std::move(cell));
}

Tensor row_of(const TensorImpl& x) {
  RefPtr<TensorImpl> row = TensorImpl::make();
  row->set_type(x.dtype(), x.device(),
                {x.storage()->nbytes() / static_cast<int64_t>(element_size(x.dtype()))});
  contiguous_strides(row->shape(), row->mutable_strides());
  row->set_storage(x.storage());
  return Tensor(std::move(row));
}

TensorType opaque_value_type() { return {kUInt8, {}, Shape{0}}; }

Tensor make_opaque_value(std::shared_ptr<void> content) {
  RefPtr<TensorImpl> cell = TensorImpl::make();
  const TensorType type = opaque_value_type();
  cell->set_type(type.dtype, type.device, type.shape);
  contiguous_strides(cell->shape(), cell->mutable_strides());
  auto* owned = new std::shared_ptr<void>(std::move(content));
  cell->set_storage(Storage::wrap(owned, 0, drop_content, owned));
  return Tensor(std::move(cell));
}

const std::shared_ptr<void>& opaque_content(const TensorImpl& opaque) {
  return *static_cast<const std::shared_ptr<void>*>(opaque.storage()->data());
}

}  // namespace retrograd
