// See cuda/device.h.
#include "cuda/device.h"

#include "cuda/driver.h"

namespace retrograd::inline v0::cuda {

int device_count(Driver* driver) {
  int count = 0;
  return driver && driver->device_count(&count) == kSuccess ? count : 0;
}

std::string unavailable_reason(Driver* driver) {
  if (!driver) return "no CUDA device: built without CUDA";
  int count = 0;
  const Status status = driver->device_count(&count);
  switch (status) {
    case kSuccess: return count > 0 ? "" : "no CUDA device";
    case kStubLibrary: return "no CUDA device: the driver is a stub";
    case kInsufficientDriver: return "no CUDA device: no driver, or one older than this build's toolkit";
    case kNoDevice: return "no CUDA device: the driver finds none";
    default: return driver->text(status);
  }
}

int device_count() { return device_count(runtime_driver()); }
std::string unavailable_reason() { return unavailable_reason(runtime_driver()); }

}  // namespace retrograd::cuda
