// Bytes of tensor data on a device: the present number, and the highest since the last reset.
#pragma once

#include <cstdint>

#include "retrograd/retrograd.h"

namespace examples {

struct DeviceMemory {
  int64_t live_bytes, peak_bytes;
};

DeviceMemory memory_of(retrograd::Device device);
/// Sets peak_bytes to live_bytes.
void reset_peak(retrograd::Device device);

}  // namespace examples
