// ExpandingArray<D>: D numbers, given as a list of D, or as one number for all. The sizes of windows are such lists:
// Conv2dOptions(3, 8, 5), Conv2dOptions(3, 8, {5, 3}).
#pragma once

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/sizes.h"

#pragma GCC visibility push(default)
namespace torch {

template <size_t D, class T = int64_t>
class ExpandingArray {
 public:
  ExpandingArray(T all) { values_.fill(all); }
  ExpandingArray(std::initializer_list<T> list)
      : ExpandingArray(std::span<const T>(list.begin(), list.size())) {}
  ExpandingArray(const std::vector<T>& list) : ExpandingArray(std::span<const T>(list)) {}
  ExpandingArray(const std::array<T, D>& list) : values_(list) {}
  /// Error(bad_argument) for another number of values than D.
  explicit ExpandingArray(std::span<const T> list) {
    if (list.size() != D)
      retrograd::fail(retrograd::Category::bad_argument, "ExpandingArray",
                      "expected " + std::to_string(D) + " values, but got " + std::to_string(list.size()));
    std::copy(list.begin(), list.end(), values_.begin());
  }

  std::array<T, D>& operator*() { return values_; }
  const std::array<T, D>& operator*() const { return values_; }
  std::array<T, D>* operator->() { return &values_; }
  const std::array<T, D>* operator->() const { return &values_; }
  size_t size() const { return D; }

  std::vector<T> vec() const { return {values_.begin(), values_.end()}; }
  operator retrograd::IntList() const requires std::is_same_v<T, int64_t> { return vec(); }
  bool operator==(const ExpandingArray&) const = default;

 private:
  std::array<T, D> values_;
};

/// The same of numbers that may be absent: AdaptiveAvgPool2dOptions({5, torch::nullopt}).
template <size_t D, class T = int64_t>
class ExpandingArrayWithOptionalElem : public ExpandingArray<D, std::optional<T>> {
 public:
  using ExpandingArray<D, std::optional<T>>::ExpandingArray;
  ExpandingArrayWithOptionalElem(T all) : ExpandingArray<D, std::optional<T>>(std::optional<T>(all)) {}
};

}  // namespace torch
#pragma GCC visibility pop
