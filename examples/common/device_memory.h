// Bytes of tensor data on a device: what is held now, and the most that was since the last reset.
#pragma once

#include <cstdint>

#include "retrograd/retrograd.h"

namespace examples {

struct DeviceMemory {
  int64_t live_bytes, peak_bytes;
};

DeviceMemory memory_of(retrograd::Device device);
/// peak_bytes becomes live_bytes.
void reset_peak(retrograd::Device device);

}  // namespace examples
