// TensorAccessor: the elements of a tensor on the CPU by number, a[i][j], as libtorch's accessor.
//
//   const auto a = x.accessor<float, 2>();
//   for (int64_t i = 0; i < a.size(0); ++i) a[i][0] = 1;
//
// It refers to the sizes, strides and memory of the tensor, which must outlive it and keep its layout. Numbers are not
// checked. As with data_ptr(), writes are seen by no version and no recording.
#pragma once

#include "engine/tensor.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

template <class T, int N>
class TensorAccessor {
 public:
  static_assert(N >= 1 && N <= kMaxRank, "a tensor of no dims has one element: item<T>()");

  TensorAccessor(T* data, const Dim* sizes, const int64_t* strides)
      : data_(data), sizes_(sizes), strides_(strides) {}

  int64_t size(int dim) const { return sizes_[dim].raw(); }
  int64_t stride(int dim) const { return strides_[dim]; }
  IntArray sizes() const {
    IntArray sizes;
    for (int dim = 0; dim < N; ++dim) sizes.push_back(size(dim));
    return sizes;
  }
  IntArray strides() const { return IntArray(strides_, strides_ + N); }
  T* data() const { return data_; }
  /// Entry `i` of the first dim: an element, or an accessor of the other dims.
  decltype(auto) operator[](int64_t i) const {
    T* const entry = data_ + i * strides_[0];
    if constexpr (N == 1)
      return static_cast<T&>(*entry);
    else
      return TensorAccessor<T, N - 1>(entry, sizes_ + 1, strides_ + 1);
  }

 private:
  T* data_;
  const Dim* sizes_;
  const int64_t* strides_;
};

template <class T, int N>
TensorAccessor<T, N> Tensor::accessor(SourceLocation where) const& {
  check_accessible(N, where);
  return {data_ptr<T>(where), impl().shape().begin(), impl().strides()};
}

}  // namespace retrograd
#pragma GCC visibility pop
