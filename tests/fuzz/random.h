// Random: the numbers that the fuzzers decide by. SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number
// Generators, 2014): its whole state is one word, and the same seed gives the same decisions on every machine, which
// std::uniform_int_distribution does not guarantee.
#pragma once

#include <cstdint>
#include <span>

namespace fuzz {

class Random {
 public:
  /// The seed is mixed first: states that differ by a few steps would give the same numbers, shifted.
  explicit Random(uint64_t seed) : state_(mixed(seed ^ 0x5851F42D4C957F2Du)) {}

  uint64_t next() { return mixed(state_ += 0x9E3779B97F4A7C15u); }
  /// 0 .. n - 1; 0 for n <= 0.
  int64_t below(int64_t n) { return n <= 0 ? 0 : static_cast<int64_t>(next() % static_cast<uint64_t>(n)); }
  int64_t between(int64_t low, int64_t high) { return low + below(high - low + 1); }
  bool chance(double p) { return static_cast<double>(next() >> 11) * 0x1p-53 < p; }
  /// In [low, high), in steps of 2^-8 of the distance: such numbers read well.
  double number(double low, double high) {
    return low + (high - low) * static_cast<double>(below(256)) / 256;
  }
  template <class List>
  decltype(auto) pick(List&& list) {
    return list[static_cast<size_t>(below(static_cast<int64_t>(std::size(list))))];
  }

 private:
  static uint64_t mixed(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }

  uint64_t state_;
};

}  // namespace fuzz
