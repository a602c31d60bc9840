// The host in a device's place: see tests/cuda/test_device.h.
#include "tests/cuda/test_device.h"

#include "cuda/executor.h"
#include "cuda/kernels/launchers.h"

namespace retrograd {

cuda::HostDriver& device_on_host() {
  static cuda::HostDriver& driver = *[] {
    auto* d = new cuda::HostDriver;  // never destroyed, as the devices
    cuda::use_driver(*d, cuda::host_code::launchers());
    return d;
  }();
  return driver;
}

void renew_device() { cuda::use_driver(device_on_host(), cuda::host_code::launchers()); }

}  // namespace retrograd
