// A tensor of a device in pinned host memory (HostCopy, engine/executor.h), copied both ways while device and host
// continue.
//
//   there   on the stream to the host, after all previous work of the compute stream. The tensor's memory, once
//           dropped, rests in the allocator until the copy is done.
//   back    on the stream to the device, after the copy to the host and all previous work of the compute stream:
//           earlier kernels may still use the destination, since blocks are reused in the order of the compute stream.
//           wait() lets the compute stream continue after it.
//
// The host never waits. Pinned memory comes from the device's pool, and is returned to it with the object.
#pragma once

#include "cuda/gpu.h"
#include "engine/executor.h"

namespace retrograd::inline v0::cuda {

/// `x`: row-major, in `block`, never written to again.
std::unique_ptr<HostCopy> copy_to_host(Gpu& gpu, const TensorImpl& x, Allocator::Block& block);

}  // namespace retrograd::cuda
