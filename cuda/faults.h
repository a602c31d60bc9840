// Faults: values that an op must not be given, which a kernel finds after its launch has returned: indices
// out of range, targets that are no class, probabilities above one, matrices that are singular.
//
// A kernel that reads such a value checks it (cuda/kernels/note.h). A bad index reads as zero and writes
// nothing, and the first fault is noted in the device's memory. The note is read when the host waits for the
// device anyway: synchronize(), and each copy to the host (item(), to_vector(), printing). There it becomes
// the error that the CPU gives, of its category and with the op's name; what was
// computed from such a value is not to be used. In debug mode it is read behind each launch. The device can
// be used on, unlike after an assertion in a kernel.
#pragma once

#include <atomic>
#include <mutex>

#include "cuda/allocator.h"
#include "cuda/fault.h"

namespace retrograd {

struct OpInfo;

namespace cuda {

class Gpu;

class Faults {
 public:
  explicit Faults(Gpu& gpu) : gpu_(gpu) {}
  Faults(const Faults&) = delete;

  /// For a kernel that is about to be launched on the compute stream.
  FaultNote note(const OpInfo& op);
  /// Behind a launch: if note() was called for it. Another thread may have looked in between.
  void launched();
  /// Behind a graph's start: what was launched with note() before may have been started once more.
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
