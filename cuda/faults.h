// Faults: indices out of range, which a kernel finds after its launch has returned.
//
// A kernel that reads an index checks it. One out of range reads as zero and writes nothing, and the first of
// them is noted in a Fault in the device's memory. The note is read when the host waits for the device
// anyway: synchronize(), and each copy to the host (item(), to_vector(), printing). There it becomes the
// error that the CPU gives, Error(index_out_of_range) with the op's name; what was computed from such an
// index is not to be used. In debug mode it is read behind each launch. The device can be used on, unlike
// after an assertion in a kernel.
#pragma once

#include <atomic>
#include <mutex>

#include "cuda/allocator.h"
#include "cuda/fault.h"

namespace retrograd::cuda {

class Gpu;

class Faults {
 public:
  explicit Faults(Gpu& gpu) : gpu_(gpu) {}
  Faults(const Faults&) = delete;

  /// For a kernel that is about to be launched on the compute stream.
  Fault* note();
  /// Waits for the kernels launched with note() since the last look. Error(index_out_of_range).
  void look();

 private:
  Gpu& gpu_;
  std::mutex mutex_;
  Allocator::Block* block_ = nullptr;  // a Fault; made at the first note(), kept as long as the device
  std::atomic<bool> is_noted_ = false;
};

}  // namespace retrograd::cuda
