// Time of a piece of work, and the limits of the machine that it is held against.
//
// A time is a median over runs. Work of less than kBatch is run several times between two readings of the
// clock. Limits are measured in the same process with the same number of threads: how fast memory of a size is
// copied (a copy of b bytes reads and writes 2 b), and how many multiplications and additions of float32 the
// widest registers do.
#pragma once

#include <cstdint>
#include <functional>

namespace bench {

struct Work {
  /// Makes ready for `count` runs; not timed.
  std::function<void(int64_t count)> prepare;
  std::function<void(int64_t i)> run;
};

/// The median time of a run, in seconds, within about `budget` seconds of measuring.
double median_seconds(const Work& work, double budget);

/// Bytes read and written per second when `bytes` are read and written by a copy, for their class of size: a
/// power of four.
double copy_rate(double bytes);

/// float32 operations per second of all threads.
double peak_flops();

}  // namespace bench
