// DeviceScratch: how much temporary memory the kernels that this thread launches on a device have taken. On the CPU the
// temporary memory of a kernel is known before it runs. A kernel of a device takes its temporary memory while it is
// launched; this count tells such memory apart when a run is measured (tracer/plan/peak_meter.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

namespace retrograd::inline v0 {

struct DeviceScratch {
  int64_t live = 0, peak = 0;  // bytes
  int foretold = 0;            // number of open Foretold scopes

  /// While open, temporary memory that is taken belongs to a forecast: that of a group (FusedKernel::temporary).
  class Foretold;

  void take(int64_t bytes) {
    if (foretold > 0) return;
    live += bytes;
    peak = std::max(peak, live);
  }
  void give(int64_t bytes) { live -= foretold > 0 ? 0 : bytes; }
  /// The highest number of live bytes since the last call.
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
