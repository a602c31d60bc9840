// An unused device, with the host in its place: for tests that check the requests to its driver.
#pragma once

#include "cuda/executor.h"
#include "cuda/kernels/launchers.h"
#include "tests/cuda/keeps_launches.h"

namespace retrograd {

inline cuda::HostDriver& new_device() {
  auto* driver = new cuda::HostDriver;  // never destroyed, as devices
  driver->on_capture = keeps_launches(*driver);
  cuda::use_driver(*driver, cuda::host_code::launchers());
  return *driver;
}

}  // namespace retrograd
