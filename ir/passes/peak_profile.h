// PeakProfile: the live bytes at each position of a graph, while a pass extends lifetimes. A segment tree over the
// positions: each node holds the maximum of its range and the amount added to the whole range. O(log n) for a query of
// a range and for an addition to one.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

namespace retrograd::inline v0::ir {

class PeakProfile {
 public:
  explicit PeakProfile(std::span<const int64_t> live)
      : leaves_(std::bit_ceil(live.size() + 1)), most_(leaves_ * 2), added_(leaves_ * 2) {
    std::ranges::copy(live, most_.begin() + static_cast<std::ptrdiff_t>(leaves_));
    for (size_t n = leaves_; n-- > 1;) most_[n] = std::max(most_[2 * n], most_[2 * n + 1]);
  }
  int64_t most() const { return most_[1]; }

  /// The maximum over the positions from `first` to `last`, both included; INT64_MIN for an empty range.
  int64_t most(int32_t first, int32_t last) const {
    int64_t found = INT64_MIN;
    for_each_part(first, last, [&](size_t part) {
      int64_t here = most_[part];
      for (size_t above = part / 2; above >= 1; above /= 2) here += added_[above];
      found = std::max(found, here);
    });
    return found;
  }
  void add(int32_t first, int32_t last, int64_t bytes) {
    for_each_part(first, last, [&](size_t part) {
      most_[part] += bytes;
      added_[part] += bytes;
      for (size_t n = part / 2; n >= 1; n /= 2)
        most_[n] = std::max(most_[2 * n], most_[2 * n + 1]) + added_[n];
    });
  }

 private:
  template <class F>
  void for_each_part(int32_t first, int32_t last, F f) const {
    size_t low = leaves_ + static_cast<size_t>(first), high = leaves_ + static_cast<size_t>(last) + 1;
    for (; low < high; low /= 2, high /= 2) {
      if (low % 2) f(low++);
      if (high % 2) f(--high);
    }
  }

  size_t leaves_;
  std::vector<int64_t> most_, added_;
};

}  // namespace retrograd::ir
