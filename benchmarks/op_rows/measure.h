// The time of a piece of work, and the limits of the machine to compare it with.
//
// A time is a median over runs. Work of less than kBatch is run several times between two readings of the clock; a
// device is waited for at both. Limits are measured in the same process with the same number of threads: the rate of
// copying memory of a given size (a copy of b bytes reads and writes 2 b), and the rate of float32 multiplications and
// additions with the widest registers; for a device, that of a large product of matrices.
#pragma once

#include <cstdint>
#include <functional>

#include "benchmarks/common/place.h"

namespace bench {

struct Work {
  /// Prepares `count` runs; not timed.
  std::function<void(int64_t count)> prepare;
  std::function<void(int64_t i)> run;
};

class Meter {
 public:
  explicit Meter(const Place& place) : place_(place) {}
  const Place& place() const { return place_; }

  /// The median time of a run, in seconds, within about `budget` seconds of measuring.
  double median_seconds(const Work& work, double budget) const;
  /// Bytes read and written per second by a copy that reads and writes `bytes`, for their size class: a power of four.
  double copy_rate(double bytes) const;
  /// float32 operations per second of all threads, or of the device.
  double peak_flops() const;

 private:
  double copy_seconds(int64_t bytes) const;
  double cpu_peak_flops() const;
  const Place& place_;
};

}  // namespace bench
