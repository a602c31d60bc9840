// The host in place of a device: see tests/cuda/test_device.h.
#include "tests/cuda/test_device.h"

#include "cuda/executor.h"
#include "cuda/fusion/fusion.h"
#include "cuda/kernels/launchers.h"
#include "tests/cuda/new_device.h"

namespace retrograd {

cuda::HostDriver& device_on_host() {
  static cuda::HostDriver& driver = *[] {
    cuda::HostDriver& d = new_device();
    cuda::fusion::use_compiler(nullptr);  // the host cannot run what NVRTC makes
    return &d;
  }();
  return driver;
}

bool is_on_host() { return true; }

void renew_device() { cuda::use_driver(device_on_host(), cuda::host_code::launchers()); }

}  // namespace retrograd
