// Tensors in the temporary memory of a kernel (cpu/scratch.h): copies of operands in the form that a kernel needs,
// and results before they are copied to the output.
//
//   LocalTensor  a row-major tensor without values
//   LocalCopy    an operand: itself, or a row-major copy in a dtype
//   LocalResult  where a result is computed: the output itself, or row-major memory that finish() copies from
//
// Nothing is copied while a call is measured. They are freed in reverse order of creation, like all scratch memory.
#pragma once

#include <cstring>
#include <optional>

#include "cpu/kernels/elementwise.h"
#include "cpu/scratch.h"
#include "engine/tensor_impl.h"

namespace retrograd::inline v0::cpu {

/// A row-major tensor without values.
class LocalTensor {
 public:
  LocalTensor(ScalarType dtype, const Shape& shape)
      : memory_(Dim::checked_mul(shape.numel().raw(), static_cast<int64_t>(element_size(dtype)))),
        cell_(TensorImpl::make()) {
    cell_->set_type(dtype, kCPU, shape);
    contiguous_strides(shape, cell_->mutable_strides());
    cell_->set_storage(Storage::wrap(memory_.data(), 0, nullptr, nullptr));
  }
  TensorImpl& operator*() const { return *cell_; }
  TensorImpl* operator->() const { return cell_.get(); }

 private:
  Scratch<std::byte> memory_;
  RefPtr<TensorImpl> cell_;
};

/// An operand: itself, or a row-major copy in a dtype.
class LocalCopy {
 public:
  /// A copy if it is `needed`.
  LocalCopy(TensorImpl* x, ScalarType dtype, bool needed) : x_(x) {
    if (!needed) return;
    copy_.emplace(dtype, x->shape());
    x_ = &**copy_;
    if (!measuring()) convert_copy(*x, *x_);
  }
  /// A copy unless it is row-major in the dtype, or null.
  LocalCopy(TensorImpl* x, ScalarType dtype)
      : LocalCopy(x, dtype, x && (x->dtype() != dtype || !x->is_contiguous())) {}
  /// A copy unless it is row-major, or null.
  explicit LocalCopy(TensorImpl* x) : LocalCopy(x, x ? x->dtype() : ScalarType::Undefined) {}
  LocalCopy(const LocalCopy&) = delete;
  explicit operator bool() const { return x_; }
  TensorImpl& operator*() const { return *x_; }
  TensorImpl* operator->() const { return x_; }
  /// The values; null for null.
  template <class T>
  T* values() const {
    return x_ ? static_cast<T*>(x_->data()) : nullptr;
  }

 private:
  std::optional<LocalTensor> copy_;
  TensorImpl* x_;
};

/// The memory in which a result is computed, row-major in a dtype: the output itself if it has that form.
class LocalResult {
 public:
  LocalResult(TensorImpl& output, ScalarType dtype) : output_(output), x_(&output) {
    if (output.dtype() == dtype && output.is_contiguous()) return;
    local_.emplace(dtype, output.shape());
    x_ = &**local_;
  }
  LocalResult(const LocalResult&) = delete;
  TensorImpl& operator*() const { return *x_; }
  TensorImpl* operator->() const { return x_; }
  /// Copies the values to the output.
  void finish() const {
    if (local_ && !measuring()) convert_copy(*x_, output_);
  }

 private:
  TensorImpl& output_;
  std::optional<LocalTensor> local_;
  TensorImpl* x_;
};

/// Sets all bytes of a contiguous tensor to 0; does nothing while scratch is measured.
inline void clear(TensorImpl& out) {
  if (measuring()) return;
  std::memset(out.data(), 0, static_cast<size_t>(out.numel().raw()) * element_size(out.dtype()));
}

}  // namespace retrograd::cpu
