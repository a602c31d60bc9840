// DeviceScratch: how much temporary memory the kernels of devices that this thread launches have taken. On the CPU temporary memory is known
// before a kernel runs, and counts as what it is; a device's kernels take theirs while they are launched, and who measures a run
// (tracer/peak_watch.h) tells it apart by this count.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

namespace retrograd {

struct DeviceScratch {
  int64_t live = 0, peak = 0;  // bytes
  int foretold = 0;            // scopes of Foretold that are open

  /// What is taken while it lives is part of a forecast: a group's (FusedKernel::temporary).
  class Foretold;

  void take(int64_t bytes) {
    if (foretold > 0) return;
    live += bytes;
    peak = std::max(peak, live);
  }
  void give(int64_t bytes) { live -= foretold > 0 ? 0 : bytes; }
  /// The most that were live at a time since the last call.
  int64_t reset_peak() { return std::exchange(peak, live); }
};
inline constinit thread_local DeviceScratch device_scratch;

class DeviceScratch::Foretold {
 public:
  Foretold() { ++device_scratch.foretold; }
  ~Foretold() { --device_scratch.foretold; }
  Foretold(const Foretold&) = delete;
};

}  // namespace retrograd
