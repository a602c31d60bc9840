// Devices: which there are, waiting for one, and the memory of its tensors.
//
// The functions on a Device work for the CPU, too. CUDA devices come with a component of their own (cuda/); a program
// that is built without it has none, and unavailable_reason() says so.
#pragma once

#include <cstdint>
#include <string>

#include "engine/shape.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

/// Returns when all work on the device is finished; on the CPU at once. Error(bad_argument) if there is no such device.
void synchronize(Device device);

namespace memory {

/// Bytes of tensor data on a device: the present number, and the highest one since the last reset_peak(). Both throw
/// Error(bad_argument) if there is no such device.
int64_t live_bytes(Device device);
int64_t peak_bytes(Device device);
/// Sets peak_bytes to live_bytes.
void reset_peak(Device device);

}  // namespace memory

namespace cuda {

/// The number of CUDA devices that this process can use; 0 if unavailable_reason() is not empty. Never throws.
int device_count();
inline bool is_available() { return device_count() > 0; }
/// Why device_count() is 0, as a phrase without a full stop ("no CUDA device: ..."); empty if there is a device.
std::string unavailable_reason();

}  // namespace cuda

}  // namespace retrograd
#pragma GCC visibility pop
