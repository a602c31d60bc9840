// Health: converts errors of a device's calls to exceptions.
//
// A call of the runtime also reports errors of earlier work on the device. Some of them are sticky: the context is
// lost, and every later call of the process fails with some code. So the first sticky error is kept, and from then on
// all work on that device is refused with it: it names the original cause. A lack of memory is never sticky.
//
// A launch returns before its kernel runs. So a later call reports an error of a kernel, and the text says "by then";
// in debug mode (Gpu::set_debug) the host waits for the device after each launch, and the error has the kernel's name.
#pragma once

#include <mutex>
#include <string>
#include <string_view>

#include "cuda/driver.h"
#include "engine/error.h"

namespace retrograd::inline v0::cuda {

/// A call of the CUDA runtime failed. code: its cudaError_t; is_sticky: this process cannot use the device any more.
class DeviceError : public RuntimeError {
 public:
  DeviceError(std::string text, Status code, bool is_sticky)
      : RuntimeError(std::move(text)), code(code), is_sticky(is_sticky) {}
  const Status code;
  const bool is_sticky;
};

/// Whether the context is lost after this code: faults of kernels and of the hardware.
bool is_sticky(Status code);

class Health {
 public:
  Health(Driver& driver, int device) : driver_(driver), device_(device) {}

  /// Returns for kSuccess, else throws a DeviceError about `what` ("copy", the name of an op). After a sticky error
  /// always throws that one.
  void check(Status status, std::string_view what);
  /// Throws the sticky error, if there was one; called before any new work.
  void require();
  /// For calls that must not throw, such as frees: a sticky error is kept for the next require().
  void note(Status status, std::string_view what) noexcept;
  bool is_lost() const;

 private:
  std::string text(Status status, std::string_view what) const;

  Driver& driver_;
  const int device_;
  mutable std::mutex mutex_;
  Status first_ = kSuccess;  // sticky
  std::string first_text_;
};

}  // namespace retrograd::cuda
