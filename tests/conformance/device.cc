// The machine's own devices: see tests/conformance/device.h.
#include "tests/conformance/device.h"

#include "cuda/executor.h"

namespace retrograd::conformance {

void prepare_device(bool waits) { cuda::gpu_of(0).set_debug(waits); }

bool is_device_lost() { return cuda::gpu_of(0).health().is_lost(); }

}  // namespace retrograd::conformance
