// ArrayRef: a list that somebody else keeps, as libtorch's, and IntArrayRef, a short list of integers.
//
//   void f(torch::IntArrayRef sizes);   f({2, 3});   f(x.sizes());   f(5);
//   float total(torch::TensorList list);
//
// An ArrayRef is an address and a length. An IntArrayRef keeps its integers: what sizes() gives is a value here, no
// address in the tensor, so there would be nothing to refer to. Limit: 16 integers, as IntList; more are an
// Error(bad_argument).
#pragma once

#include <algorithm>
#include <array>
#include <iterator>
#include <ostream>

#include "engine/sizes.h"
#include "engine/tensor.h"

#pragma GCC visibility push(default)
namespace torch {

template <class T>
class ArrayRef {
 public:
  using value_type = T;
  using iterator = const T*;
  using const_iterator = const T*;

  constexpr ArrayRef() = default;
  constexpr ArrayRef(const T& one) : data_(&one), size_(1) {}
  constexpr ArrayRef(const T* data, size_t size) : data_(data), size_(size) {}
  constexpr ArrayRef(const T* begin, const T* end) : data_(begin), size_(static_cast<size_t>(end - begin)) {}
  constexpr ArrayRef(const std::initializer_list<T>& list) : data_(std::data(list)), size_(list.size()) {}
  ArrayRef(const std::vector<T>& list) : data_(list.data()), size_(list.size()) {}
  template <size_t N>
  constexpr ArrayRef(const std::array<T, N>& list) : data_(list.data()), size_(N) {}
  template <size_t N>
  constexpr ArrayRef(const T (&list)[N]) : data_(list), size_(N) {}

  constexpr size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr const T* data() const { return data_; }
  constexpr iterator begin() const { return data_; }
  constexpr iterator end() const { return data_ + size_; }
  constexpr const_iterator cbegin() const { return begin(); }
  constexpr const_iterator cend() const { return end(); }
  constexpr std::reverse_iterator<iterator> rbegin() const { return std::reverse_iterator<iterator>(end()); }
  constexpr std::reverse_iterator<iterator> rend() const { return std::reverse_iterator<iterator>(begin()); }
  constexpr const T& operator[](size_t i) const { return data_[i]; }
  /// Error(index_out_of_range) beyond the end.
  const T& at(size_t i) const {
    if (i >= size_)
      retrograd::fail(retrograd::Category::index_out_of_range, "ArrayRef",
                      "there is no element " + std::to_string(i));
    return data_[i];
  }
  constexpr const T& front() const { return data_[0]; }
  constexpr const T& back() const { return data_[size_ - 1]; }
  std::vector<T> vec() const { return {begin(), end()}; }
  constexpr ArrayRef slice(size_t from, size_t count) const { return {data_ + from, count}; }
  constexpr ArrayRef slice(size_t from) const { return slice(from, size_ - from); }
  constexpr bool equals(const ArrayRef& other) const {
    return std::equal(begin(), end(), other.begin(), other.end());
  }
  friend constexpr bool operator==(const ArrayRef& a, const ArrayRef& b) { return a.equals(b); }
  /// For the library's functions, which take vectors.
  operator std::vector<T>() const { return vec(); }

 private:
  const T* data_ = nullptr;
  size_t size_ = 0;
};

template <>
class ArrayRef<int64_t> : public retrograd::IntList {
 public:
  using value_type = int64_t;
  using iterator = const int64_t*;
  using const_iterator = const int64_t*;
  using IntList::IntList;
  ArrayRef(const int64_t* data, size_t size) : ArrayRef(data, data + size) {}
  ArrayRef(const int64_t* begin, const int64_t* end) {
    for (; begin != end; ++begin) push_back(*begin);
  }
  template <size_t N>
  ArrayRef(const std::array<int64_t, N>& list) : ArrayRef(list.data(), N) {}

  size_t size() const { return static_cast<size_t>(IntList::size()); }
  int64_t operator[](size_t i) const { return values[i]; }
  const int64_t* data() const { return begin(); }
  int64_t front() const { return values[0]; }
  int64_t back() const { return values[size() - 1]; }
  std::vector<int64_t> vec() const { return {begin(), end()}; }
  ArrayRef slice(size_t from, size_t count) const { return {begin() + from, count}; }
  ArrayRef slice(size_t from) const { return slice(from, size() - from); }
  bool equals(const ArrayRef& other) const { return std::equal(begin(), end(), other.begin(), other.end()); }
  friend bool operator==(const ArrayRef& a, const ArrayRef& b) { return a.equals(b); }
  friend bool operator==(const retrograd::Sizes& a, const ArrayRef& b) { return ArrayRef(a).equals(b); }

  operator std::vector<int64_t>() const { return vec(); }
  operator retrograd::Shape() const { return vec(); }
};

using IntArrayRef = ArrayRef<int64_t>;

template <class T>
std::ostream& operator<<(std::ostream& out, const ArrayRef<T>& list) {
  const char* between = "[";
  for (const auto& item : list) out << std::exchange(between, ", ") << item;
  return out << (list.empty() ? "[]" : "]");
}

}  // namespace torch
#pragma GCC visibility pop
