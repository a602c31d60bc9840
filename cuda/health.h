// Health: how errors of a device's calls become exceptions.
//
// A call of the runtime also reports what earlier work on the device came to. Some of these errors are sticky: the context is lost, and
// every later call of the process fails with some code or other. So the first sticky error is kept, and from then on all work on that
// device is refused with it: it names what went wrong first. Not enough memory is never sticky.
//
// A launch returns before its kernel runs. An error of a kernel is therefore seen by a later call, and its text says "by then"; in the
// debug mode (Gpu::set_debug) the device is waited for behind each launch, and the error has the kernel's name.
#pragma once

#include <mutex>
#include <string>
#include <string_view>

#include "cuda/driver.h"
#include "engine/error.h"

namespace retrograd::cuda {

/// A call of the CUDA runtime failed. code: its cudaError_t; is_sticky: the device cannot be used any more by this process.
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

  /// Nothing for kSuccess, else a DeviceError about `what` ("copy", the name of an op). After a sticky one always that.
  void check(Status status, std::string_view what);
  /// Throws the sticky error, if there was one: before any new work.
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
