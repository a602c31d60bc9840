// c10::irange: the integers of a range, as something to loop over.
//
//   for (const auto i : c10::irange(n))      for (auto i : c10::irange(begin, end))
//
// An end that is not above the beginning gives an empty range.
#pragma once

#include <concepts>
#include <cstddef>
#include <iterator>

#pragma GCC visibility push(default)
namespace torch {

template <std::integral T>
class IntegerRange {
 public:
  class iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using pointer = const T*;
    using reference = T;

    explicit iterator(T at) : at_(at) {}
    T operator*() const { return at_; }
    iterator& operator++() {
      ++at_;
      return *this;
    }
    iterator operator++(int) { return iterator(at_++); }
    friend bool operator==(const iterator&, const iterator&) = default;

   private:
    T at_;
  };

  IntegerRange(T begin, T end) : begin_(begin), end_(end > begin ? end : begin) {}
  iterator begin() const { return begin_; }
  iterator end() const { return end_; }

 private:
  iterator begin_, end_;
};

template <std::integral T>
IntegerRange<T> irange(T end) {
  return {T(), end};
}
/// Of the type of `end`.
template <std::integral Begin, std::integral End>
IntegerRange<End> irange(Begin begin, End end) {
  return {static_cast<End>(begin), end};
}

}  // namespace torch
#pragma GCC visibility pop
