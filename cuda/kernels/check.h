// Values that an op refuses: found on the device, reported as on the CPU, by an error of the call itself. For
// that the host waits for the device.
#pragma once

#include "cuda/kernels/check_call.h"
#include "ir/op.h"

namespace retrograd::cuda {

/// The first bad value of x, within the bounds that `c` has. For the op of `call`.
BadValue first_bad(const Call& call, const TensorImpl& x, CheckCall c);

}  // namespace retrograd::cuda
