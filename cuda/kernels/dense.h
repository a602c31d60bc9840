// DenseTensor: an operand or a result of a device's kernel that takes only row-major tensors: itself, or a copy in
// temporary memory.
#pragma once

#include <optional>

#include "cuda/kernels/elementwise.h"
#include "cuda/scratch.h"
#include "engine/tensor_impl.h"

namespace retrograd::inline v0::cuda {

class DenseTensor {
 public:
  /// Itself if it is row-major and at a multiple of `alignment` bytes. For the op of this name.
  DenseTensor(TensorImpl& x, std::string_view op, size_t alignment = 1) : there_(x) {
    if (x.is_contiguous() && reinterpret_cast<uintptr_t>(x.data()) % alignment == 0) return;
    room_.emplace(x.numel().raw() * static_cast<int64_t>(element_size(x.dtype())), op);
    copy_ = TensorImpl::make();
    copy_->alias(x);
    contiguous_strides(x.shape(), copy_->mutable_strides());
    copy_->set_storage_offset(0);
    copy_->set_storage(Storage::wrap(room_->data(), 0, nullptr, nullptr));
  }
  TensorImpl& here() { return copy_ ? *copy_ : there_; }
  /// Copies the values here.
  void bring() {
    if (copy_) convert_copy(there_, *copy_);
  }
  /// Copies the values back.
  void take_back() {
    if (copy_) convert_copy(*copy_, there_);
  }

 private:
  TensorImpl& there_;
  std::optional<Scratch> room_;
  RefPtr<TensorImpl> copy_;
};

}  // namespace retrograd::cuda
