// How far results on the device of tests were from the CPU's, for a report on the device's accuracy: expect_same()
// (device_on_host.h) records all elements, and the bundle's program `parity` prints the result.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace retrograd {

struct ErrorsMet {
  int64_t unequal = 0;   // elements
  double tolerance = 0;  // of a usual formula
  double worst = 0;      // of what was allowed where it was met

  void note(double difference, double allowed) {
    ++unequal;
    worst = std::max(worst, difference / allowed);
  }
};

/// Of a dtype, by its number.
inline ErrorsMet& errors_met(int dtype) {
  static std::array<ErrorsMet, 32> all;
  return all.at(static_cast<size_t>(dtype));
}

}  // namespace retrograd
