// Which CUDA devices there are: the one question that any build can ask, with or without a toolkit, driver or
// device.
//
// Two implementations: device.cu, compiled by nvcc where CUDA is on, and device_absent.cc elsewhere. A
// program that links this library starts on a machine without a driver, since the driver is looked for at the
// first call.
#pragma once

namespace retrograd::cuda {

/// The number of CUDA devices that this process can use; 0 where unavailable_reason() has something to say.
/// Never throws.
int device_count();

/// Why device_count() is 0, as a phrase without a full stop ("no CUDA device: ..."); empty if there is a
/// device. The text lives as long as the program.
const char* unavailable_reason();

}  // namespace retrograd::cuda
