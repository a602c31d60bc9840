// The host in a device's place: see tests/cuda/test_device.h.
#include "tests/cuda/test_device.h"

#include "cuda/executor.h"
#include "cuda/fusion/fusion.h"
#include "cuda/kernels/launchers.h"
#include "tests/cuda/keeps_launches.h"

namespace retrograd {

cuda::HostDriver& device_on_host() {
  static cuda::HostDriver& driver = *[] {
    auto* d = new cuda::HostDriver;  // never destroyed, as the devices
    d->on_capture = keeps_launches(*d);
    cuda::use_driver(*d, cuda::host_code::launchers());
    cuda::fusion::use_compiler(nullptr);  // the host cannot run what NVRTC makes
    return d;
  }();
  return driver;
}

bool is_on_host() { return true; }

void renew_device() { cuda::use_driver(device_on_host(), cuda::host_code::launchers()); }

}  // namespace retrograd
