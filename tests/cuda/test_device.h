// The device cuda:0 of tests that compare it with the CPU. The same cases are linked twice:
//
//   each test alone  with device_on_host.cc: HostDriver's memory, and the kernels' source compiled for the host; no
//                    device is needed
//   :parity          all together with device_of_machine.cc: the machine's own device
//
// A case that inspects the driver, or replaces something in it, does not apply to a machine's device: it has the tag
// [host], and parity is run without those.
#pragma once

#include "tests/cuda/host_driver.h"

namespace retrograd {

/// Makes cuda:0 the device of this program. Returns its driver, or in :parity an unused one.
cuda::HostDriver& device_on_host();
/// Whether cuda:0 is the host in a device's place; false in :parity.
bool is_on_host();
/// Makes the device again, with the present state of the driver. In :parity does nothing.
void renew_device();

}  // namespace retrograd
