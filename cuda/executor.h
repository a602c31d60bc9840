// The executors of CUDA devices, which the engine gets from cuda_executor() (engine/runner.h). There is one for each
// device, made at its first use and never destroyed, since tensors of static lifetime may free their memory while the
// process exits.
#pragma once

#include "cuda/gpu.h"

namespace retrograd::inline v0::cuda {

/// The device `index`. Error(bad_argument) when there is none; the text says why.
Gpu& gpu_of(int index);

/// For tests: uses the devices of this driver, with kernels of these launchers, instead of the machine's; without
/// fusion, until a test provides a compiler (cuda/fusion/fusion.h). To be called before a device is used.
void use_driver(Driver& driver, const Launchers& launchers);

}  // namespace retrograd::cuda
