// Which CUDA devices there are. Any build can use this, with or without a toolkit, driver or device.
//
// Three codes mean that there is no device, with different causes: 34 (the toolkit's stub in place of the driver), 35
// (no driver, or one too old), 100 (a driver without a device). Any other code is a driver that does not work, and its
// own text is passed on.
//
// A program that links this library starts on a machine without a driver, since the driver is loaded at the first call.
#pragma once

#include <string>

#include "engine/device.h"

namespace retrograd::inline v0::cuda {

class Driver;

/// As the functions of engine/device.h, for a given driver; null means a build without CUDA.
int device_count(Driver* driver);
std::string unavailable_reason(Driver* driver);

}  // namespace retrograd::cuda
