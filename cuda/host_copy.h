// A tensor of a device in pinned memory of the host (HostCopy, engine/executor.h), copied both ways while device and host go on.
//
//   there   on the stream to the host, behind what the compute stream has been given. The tensor's memory, once dropped, rests in the
//           allocator until the copy is done.
//   back    on the stream to the device, behind the copy there and behind what the compute stream has been given: the memory that it writes
//           to may still be used by earlier kernels, since blocks are handed on in the order of the compute stream. wait() lets the compute
//           stream go on behind it.
//
// The host never waits. Pinned memory comes from the device's pool, and goes back to it with the object.
#pragma once

#include "cuda/gpu.h"
#include "engine/executor.h"

namespace retrograd::cuda {

/// `x`: row-major, in `block`, never written to again.
std::unique_ptr<HostCopy> copy_to_host(Gpu& gpu, const TensorImpl& x, Allocator::Block& block);

}  // namespace retrograd::cuda
