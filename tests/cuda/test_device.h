// The device cuda:0 of tests that compare it with the CPU. The same cases are linked twice:
//
//   each test alone  with device_on_host.cc: HostDriver's memory, and the kernels' source compiled for the host; no device is needed
//   :parity          all together with device_of_machine.cc: the machine's own device
//
// A case that looks into the driver, or puts something in its place, says nothing of a machine's device: it
// has the tag [host], and parity is run without those.
#pragma once

#include "tests/cuda/host_driver.h"

namespace retrograd {

/// Makes cuda:0 what it is in this program. The driver that stands behind it, or in :parity one that nothing
/// uses.
cuda::HostDriver& device_on_host();
/// Whether cuda:0 is the host in a device's place; false in :parity.
bool is_on_host();
/// Makes the device anew, with what the driver now has. In :parity nothing.
void renew_device();

}  // namespace retrograd
