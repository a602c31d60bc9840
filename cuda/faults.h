// Faults: invalid values that a kernel finds after its launch has returned: indices out of range, targets that are no
// class, probabilities above one, singular matrices.
//
// A kernel that reads such a value checks it (cuda/kernels/note.h). A bad index reads as zero and writes nothing, and
// the first fault is recorded in device memory. The record is read when the host waits for the device anyway: in
// synchronize(), and at each copy to the host (item(), to_vector(), printing). Then it becomes the same error as on the
// CPU, with its category and the op's name; results computed from such a value are invalid. In debug mode it is read
// after each launch. The device remains usable, unlike after an assertion in a kernel.
#pragma once

#include <atomic>
#include <mutex>

#include "cuda/allocator.h"
#include "cuda/fault.h"
#include "engine/op.h"

namespace retrograd::inline v0 {

namespace cuda {

class Gpu;

class Faults {
 public:
  explicit Faults(Gpu& gpu) : gpu_(gpu) {}
  Faults(const Faults&) = delete;

  /// For a kernel that is about to be launched on the compute stream.
  FaultNote note(const OpInfo& op);
  /// Called after a launch for which note() was called. Another thread may have called look() in between.
  void launched();
  /// Called after the start of a graph, which may repeat launches with note().
  void note_again();
  /// Waits for the kernels launched with note() since the last look. Error(index_out_of_range, bad_argument,
  /// singular_matrix, not_positive_definite).
  void look();

 private:
  Gpu& gpu_;
  std::mutex mutex_;
  Allocator::Block* block_ = nullptr;  // a Fault; made at the first note(), kept as long as the device
  std::atomic<bool> is_noted_ = false;
};

}  // namespace cuda

}  // namespace retrograd
