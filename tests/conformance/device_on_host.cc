// The host in place of a device: see tests/conformance/device.h. Its memory is guarded: an access by the CPU is an
// error, as on a machine with a device. Not under AddressSanitizer, which searches all memory for pointers at the end.
#include "cuda/executor.h"
#include "cuda/fusion/fusion.h"
#include "cuda/kernels/launchers.h"
#include "cuda/on_host/scheduler.h"
#include "tests/conformance/device.h"
#include "tests/cuda/host_driver.h"

namespace retrograd::conformance {
namespace {

struct Driver final : on_host::Gate {
  cuda::HostDriver memory;
  void open() override { memory.open(); }
  void close() override { memory.close(); }
};

}  // namespace

void prepare_device(bool waits) {
  static Driver& driver = *new Driver;  // never destroyed, as the devices
#if !defined(__SANITIZE_ADDRESS__)
  driver.memory.guard();
  on_host::set_gate(driver);
#endif
  cuda::use_driver(driver.memory, cuda::host_code::launchers());
  cuda::fusion::use_compiler(nullptr);  // the host cannot run what NVRTC makes
  cuda::gpu_of(0).set_debug(waits);
}

bool is_device_lost() { return cuda::gpu_of(0).health().is_lost(); }

}  // namespace retrograd::conformance
