// The machine's own devices: see tests/conformance/device.h.
#include "tests/conformance/device.h"

namespace retrograd::conformance {

void prepare_device() {}

}  // namespace retrograd::conformance
