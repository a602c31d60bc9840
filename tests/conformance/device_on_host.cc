// The host in a device's place: see tests/conformance/device.h.
#include "cuda/executor.h"
#include "cuda/kernels/launchers.h"
#include "tests/conformance/device.h"
#include "tests/cuda/host_driver.h"

namespace retrograd::conformance {

void prepare_device() {
  static cuda::HostDriver* driver = new cuda::HostDriver;  // never destroyed, as the devices
  cuda::use_driver(*driver, cuda::host_code::launchers());
}

}  // namespace retrograd::conformance
