// Short lists of integers kept inline: Sizes, what a tensor's sizes() and strides() give, and IntList, a list of dims or
// sizes among the parameters and attributes of ops.
//
// Both are plain values without memory of their own. Limits: kMaxRank integers, twice as many in an IntList.
#pragma once

#include <concepts>
#include <iosfwd>
#include <iterator>

#include "engine/shape.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

/// The sizes or strides of a tensor, by value. An iterator has the values with it, so those of two calls belong together
/// and outlive both: std::vector<int64_t>(x.sizes().begin(), x.sizes().end()).
class Sizes {
 public:
  using value_type = int64_t;
  class iterator;
  using const_iterator = iterator;

  Sizes() = default;
  explicit Sizes(const Shape& shape) : rank_(static_cast<size_t>(shape.rank())) {
    for (size_t i = 0; i < rank_; ++i) values_[i] = shape[static_cast<int>(i)].value();
  }
  size_t size() const { return rank_; }
  bool empty() const { return rank_ == 0; }
  int64_t operator[](size_t i) const { return values_[i]; }
  int64_t front() const { return values_[0]; }
  int64_t back() const { return values_[rank_ - 1]; }
  inline iterator begin() const;
  inline iterator end() const;
  const int64_t* data() const& { return values_; }
  const int64_t* data() && = delete;  // auto sizes = x.sizes(); sizes.data()
  operator IntArray() const { return vec(); }
  IntArray vec() const { return IntArray(values_, values_ + rank_); }
  bool equals(const IntArray& list) const { return equals(list.data(), list.size()); }
  friend bool operator==(const Sizes& a, const Sizes& b) { return a.equals(b.values_, b.rank_); }
  friend bool operator==(const Sizes& a, const IntArray& b) { return a.equals(b.data(), b.size()); }

 private:
  bool equals(const int64_t* values, size_t count) const {
    if (count != rank_) return false;
    for (size_t i = 0; i < count; ++i)
      if (values_[i] != values[i]) return false;
    return true;
  }

  size_t rank_ = 0;
  int64_t values_[kMaxRank] = {};
};

/// "[2, 3]".
std::ostream& operator<<(std::ostream& out, const Sizes& sizes);

/// Two iterators are equal when their positions are.
class Sizes::iterator {
 public:
  using iterator_category = std::random_access_iterator_tag;
  using value_type = int64_t;
  using difference_type = std::ptrdiff_t;
  using pointer = const int64_t*;
  using reference = int64_t;

  iterator() = default;
  iterator(const Sizes& of, difference_type at) : of_(of), at_(at) {}
  int64_t operator*() const { return (*this)[0]; }
  int64_t operator[](difference_type n) const { return of_[static_cast<size_t>(at_ + n)]; }
  iterator& operator+=(difference_type n) {
    at_ += n;
    return *this;
  }
  iterator& operator-=(difference_type n) { return *this += -n; }
  iterator& operator++() { return *this += 1; }
  iterator& operator--() { return *this -= 1; }
  iterator operator++(int) {
    const iterator before = *this;
    ++*this;
    return before;
  }
  iterator operator--(int) {
    const iterator before = *this;
    --*this;
    return before;
  }
  friend iterator operator+(iterator a, difference_type n) { return a += n; }
  friend iterator operator+(difference_type n, iterator a) { return a += n; }
  friend iterator operator-(iterator a, difference_type n) { return a -= n; }
  friend difference_type operator-(const iterator& a, const iterator& b) { return a.at_ - b.at_; }
  friend bool operator==(const iterator& a, const iterator& b) { return a.at_ == b.at_; }
  friend auto operator<=>(const iterator& a, const iterator& b) { return a.at_ <=> b.at_; }

 private:
  Sizes of_;
  difference_type at_ = 0;
};

inline Sizes::iterator Sizes::begin() const { return {*this, 0}; }
inline Sizes::iterator Sizes::end() const { return {*this, static_cast<std::ptrdiff_t>(rank_)}; }
inline Shape::Shape(const Sizes& sizes) : rank_(0) {
  for (const int64_t size : sizes) push_back(size);
}

/// A list of integers kept inline, so that attributes stay plain data.
struct IntList {
  static constexpr int kCapacity = 2 * kMaxRank;
  int8_t count = 0;
  int64_t values[kCapacity] = {};
  IntList() = default;
  IntList(std::initializer_list<int64_t> list) { assign(list.begin(), list.size()); }
  IntList(const IntArray& list) { assign(list.data(), list.size()); }
  IntList(const Sizes& sizes) {
    for (const int64_t size : sizes) push_back(size);
  }
  template <std::integral T>
  requires(!std::same_as<T, bool>)  // a flag is no dim
      IntList(T one) {
    push_back(static_cast<int64_t>(one));
  }
  int size() const { return count; }
  bool empty() const { return count == 0; }
  int64_t operator[](int i) const { return values[i]; }
  int64_t& operator[](int i) { return values[i]; }
  const int64_t* begin() const { return values; }
  const int64_t* end() const { return values + count; }
  void push_back(int64_t v) {
    if (count == kCapacity) fail(Category::bad_argument, "list", "too many integers");
    values[count++] = v;
  }

 private:
  void assign(const int64_t* from, size_t n) {
    for (size_t i = 0; i < n; ++i) push_back(from[i]);
  }
};

/// A bool parameter of an overload that a dim or another number must not select.
struct Flag {
  bool value;
  template <std::same_as<bool> B>
  Flag(B value) : value(value) {}
};

}  // namespace retrograd
#pragma GCC visibility pop
