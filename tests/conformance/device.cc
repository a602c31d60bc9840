// The machine's own devices: see tests/conformance/device.h.
#include "tests/conformance/device.h"

#include "cuda/executor.h"

namespace retrograd::conformance {

void prepare_device() { cuda::gpu_of(0).set_debug(true); }

}  // namespace retrograd::conformance
