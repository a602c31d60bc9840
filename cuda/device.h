// Which CUDA devices there are. Any build can use this, with or without a toolkit, driver or device.
//
// Three codes mean that there is no device, with different causes: 34 (the toolkit's stub in place of the driver), 35
// (no driver, or one too old), 100 (a driver without a device). Any other code is a driver that does not work, and its
// own text is passed on.
//
// A program that links this library starts on a machine without a driver, since the driver is loaded at the first call.
#pragma once

#include <string>

namespace retrograd::cuda {

class Driver;

/// The number of CUDA devices that this process can use; 0 if unavailable_reason() is not empty. Never throws.
int device_count();

/// Why device_count() is 0, as a phrase without a full stop ("no CUDA device: ..."); empty if there is a
/// device.
std::string unavailable_reason();

/// The same for a given driver; null means a build without CUDA.
int device_count(Driver* driver);
std::string unavailable_reason(Driver* driver);

}  // namespace retrograd::cuda
