// See examples/common/device_memory.h.
#include "examples/common/device_memory.h"

#include "cuda/executor.h"

namespace examples {

namespace rg = retrograd;

DeviceMemory memory_of(rg::Device device) {
  if (device == rg::kCPU) return {rg::memory::stats().live_bytes, rg::memory::stats().peak_bytes};
  const rg::cuda::Allocator::Stats stats = rg::cuda::gpu_of(device.index).memory().stats();
  return {stats.live_bytes, stats.peak_bytes};
}

void reset_peak(rg::Device device) {
  if (device == rg::kCPU)
    rg::memory::reset_peak();
  else
    rg::cuda::gpu_of(device.index).memory().reset_peak();
}

}  // namespace examples
