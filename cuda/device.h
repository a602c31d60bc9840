// Which CUDA devices there are: the one question that any build can ask, with or without a toolkit, driver or
// device.
//
// Three codes mean that there is no device, and say so in different words: 34 (the toolkit's stub stands in
// the driver's place), 35 (no driver, or one too old), 100 (a driver without a device). Any other is a driver
// that does not work, and its own text is passed on.
//
// A program that links this library starts on a machine without a driver, since the driver is looked for at the
// first call.
#pragma once

#include <string>

namespace retrograd::cuda {

class Driver;

/// The number of CUDA devices that this process can use; 0 where unavailable_reason() has something to say.
/// Never throws.
int device_count();

/// Why device_count() is 0, as a phrase without a full stop ("no CUDA device: ..."); empty if there is a
/// device.
std::string unavailable_reason();

/// The same of a driver; null stands for a build without CUDA.
int device_count(Driver* driver);
std::string unavailable_reason(Driver* driver);

}  // namespace retrograd::cuda
