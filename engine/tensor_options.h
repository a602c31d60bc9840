// TensorOptions: the dtype, device and gradient flag of a new tensor, as libtorch's.
//
//   zeros({2, 3}, kFloat64);
//   zeros({2, 3}, TensorOptions().dtype(kFloat64).device("cuda:1").requires_grad(true));
//
// Each may be left out; a factory then uses its own: the default dtype or that of its numbers, the CPU, or what the
// tensor has that the new one is to be like. A plain value of 4 bytes.
#pragma once

#include "engine/shape.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

/// Tensors are dense.
enum class TensorLayout : uint8_t { Strided };
/// Accepted where libtorch takes it, without effect: new memory is row-major.
enum class MemoryFormat : uint8_t { Contiguous, Preserve, ChannelsLast, ChannelsLast3d };

class TensorOptions {
 public:
  TensorOptions() = default;
  TensorOptions(ScalarType dtype) : dtype_(dtype), has_dtype_(true) {}
  TensorOptions(Device device) : device_(device), has_device_(true) {}
  TensorOptions(DeviceType device) : TensorOptions(Device(device)) {}
  template <std::convertible_to<std::string_view> T>
  TensorOptions(const T& device, SourceLocation where = SourceLocation::current())
      : TensorOptions(Device(device, where)) {}
  TensorOptions(ScalarType dtype, Device device, bool requires_grad = false)
      : dtype_(dtype),
        device_(device),
        requires_grad_(requires_grad),
        has_dtype_(true),
        has_device_(true),
        has_requires_grad_(true) {}

  /// The dtype; the default dtype if none was given.
  ScalarType dtype() const { return has_dtype_ ? dtype_ : get_default_dtype(); }
  Device device() const { return device_; }
  bool requires_grad() const { return requires_grad_; }
  bool has_dtype() const { return has_dtype_; }
  bool has_device() const { return has_device_; }
  bool has_requires_grad() const { return has_requires_grad_; }

  // The same options but for one.
  TensorOptions dtype(ScalarType dtype) const {
    TensorOptions next = *this;
    next.dtype_ = dtype, next.has_dtype_ = true;
    return next;
  }
  template <class T>
  TensorOptions dtype() const {
    static_assert(dtype_of<T>() != ScalarType::Undefined, "no dtype stores this type");
    return dtype(dtype_of<T>());
  }
  TensorOptions device(Device device) const {
    TensorOptions next = *this;
    next.device_ = device, next.has_device_ = true;
    return next;
  }
  TensorOptions device(DeviceType type, int index) const { return device(Device(type, index)); }
  TensorOptions requires_grad(bool on) const {
    TensorOptions next = *this;
    next.requires_grad_ = on, next.has_requires_grad_ = true;
    return next;
  }
  TensorOptions layout(TensorLayout) const { return *this; }
  TensorLayout layout() const { return TensorLayout::Strided; }
  TensorOptions memory_format(MemoryFormat) const { return *this; }
  /// Memory for transfers is chosen by the library: no effect.
  TensorOptions pinned_memory(bool) const { return *this; }

  /// What these leave out, from `others`.
  TensorOptions or_else(const TensorOptions& others) const {
    TensorOptions next = *this;
    if (!has_dtype_ && others.has_dtype_) next = next.dtype(others.dtype_);
    if (!has_device_ && others.has_device_) next = next.device(others.device_);
    if (!has_requires_grad_ && others.has_requires_grad_) next = next.requires_grad(others.requires_grad_);
    return next;
  }

 private:
  ScalarType dtype_ = ScalarType::Undefined;
  Device device_ = DeviceType::CPU;
  bool requires_grad_ : 1 = false;
  bool has_dtype_ : 1 = false;
  bool has_device_ : 1 = false;
  bool has_requires_grad_ : 1 = false;
};

/// "TensorOptions(dtype=float32, device=cpu, layout=Strided, requires_grad=false)".
std::ostream& operator<<(std::ostream& out, const TensorOptions& options);

}  // namespace retrograd
#pragma GCC visibility pop
