// Kernels of the host's stand-in while a stream is captured: they are kept, as on a device.
#pragma once

#include "cuda/on_host/scheduler.h"
#include "tests/cuda/host_driver.h"

namespace retrograd {

/// What HostDriver::on_capture is to do.
inline std::function<void(cuda::StreamHandle)> keeps_launches(cuda::HostDriver& driver) {
  return [&driver](cuda::StreamHandle stream) {
    std::function<void(std::function<void()>)> keep;
    if (stream) keep = [&driver](std::function<void()> run) { driver.capture(std::move(run)); };
    on_host::keep_launches(stream, std::move(keep));
  };
}

}  // namespace retrograd
