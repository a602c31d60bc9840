// MachineRates: how fast this machine copies memory and multiplies matrices with the kernels of the library, found by a
// measurement of some milliseconds.
//
// A measurement runs a copy of more memory than caches of a core hold, and a product of matrices of float32, a few
// times each, and takes the fastest: that which the least else has delayed. Each device is measured once in a process,
// where its rates are first asked for; a second thread waits for the first one's.
//
// Limits: they are rates of one moment. Other work on the machine lowers them, so they may differ from process to
// process. A measurement takes up to 64 MB of memory of the CPU, 512 MB of a CUDA device, and gives it back.
#pragma once

#include "engine/device.h"

namespace retrograd::inline v0 {

struct MachineRates {
  double bytes_per_second = 0, flops_per_second = 0;
  double flops_per_byte() const { return flops_per_second / bytes_per_second; }
};

/// Error(bad_argument) if there is no such device.
MachineRates machine_rates(Device device);

}  // namespace retrograd
