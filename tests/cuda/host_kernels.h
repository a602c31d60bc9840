// Kernels of fused groups compiled for the host, by name: written by tests/cuda/write_fused_groups.cc, for
// HostDriver::kernels.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "cuda/driver.h"

namespace retrograd::cuda {

using HostKernels =
    std::map<std::string, std::function<void(const LaunchShape&, const void* parameter, StreamHandle)>,
             std::less<>>;

HostKernels fused_kernels();

}  // namespace retrograd::cuda
