// Rows: a tensor seen as rows of elements along some of its dims, read and written as contiguous T whatever
// its dtype and strides.
#pragma once

#include <vector>

#include "cpu/kernels/layout.h"
#include "ir/op.h"

namespace retrograd::cpu {

/// Elements that one chunk of a parallel loop takes: below it a parallel region costs more than it gains.
inline constexpr int64_t kRowGrain = 32768;

/// The type that elements of a dtype are computed in: double, float for the narrower floats, int64_t for
/// integers and bool.
template <class T>
using ComputeOf = std::conditional_t<std::is_integral_v<T>, int64_t,
                                     std::conditional_t<std::is_same_v<T, double>, double, float>>;

/// Calls f(std::type_identity<V>{}) with the compute type of a dtype.
template <class F>
void dispatch_compute(ScalarType dtype, F&& f) {
  if (dtype == kFloat64)
    f(std::type_identity<double>{});
  else if (is_floating(dtype))
    f(std::type_identity<float>{});
  else
    f(std::type_identity<int64_t>{});
}
/// The same for floating dtypes.
template <class F>
void dispatch_floating(ScalarType dtype, F&& f) {
  if (dtype == kFloat64)
    f(std::type_identity<double>{});
  else
    f(std::type_identity<float>{});
}

inline uint64_t dim_mask(const IntList& dims) {
  uint64_t mask = 0;
  for (int64_t d : dims) mask |= uint64_t{1} << d;
  return mask;
}

/// One row for each index of the dims that are not in `along`; rows are numbered, as are elements of a row,
/// in row-major order.
class Rows {
 public:
  Rows(const TensorImpl& x, uint64_t along)
      : x_(&x), kept_(x, ~along), along_(x, along), count_(kept_.numel()), length_(along_.numel()) {}
  Rows(const TensorImpl& x, const IntList& dims) : Rows(x, dim_mask(dims)) {}

  int64_t count() const { return count_; }
  int64_t length() const { return length_; }
  const Layout& kept() const { return kept_; }
  const Layout& along() const { return along_; }

  /// Elements [begin, end) of a row: in place where they lie behind each other as T, else copied to `tile`.
  template <class T>
  const T* read(int64_t row, int64_t begin, int64_t end, T* tile) const {
    if (is_direct<T>()) return static_cast<const T*>(x_->data()) + kept_.offset(row) + begin;
    dispatch(x_->dtype(), [&]<class D>(std::type_identity<D>) {
      gather(static_cast<const D*>(x_->data()) + kept_.offset(row), along_, begin, end, tile);
    });
    return tile;
  }
  template <class T>
  const T* read(int64_t row, T* tile) const {
    return read(row, 0, length_, tile);
  }

  /// Where a row may be computed: in place, or `tile`. write() then brings it to its place.
  template <class T>
  T* target(int64_t row, T* tile) const {
    return is_direct<T>() ? static_cast<T*>(x_->data()) + kept_.offset(row) : tile;
  }
  template <class T>
  void write(int64_t row, const T* from) const {
    if (is_direct<T>()) return;
    dispatch(x_->dtype(), [&]<class D>(std::type_identity<D>) {
      scatter(from, static_cast<D*>(x_->data()) + kept_.offset(row), along_, 0, length_);
    });
  }

  /// Rows that one chunk of a parallel loop takes.
  int64_t grain() const { return std::max<int64_t>(1, kRowGrain / std::max<int64_t>(1, length_)); }

 private:
  template <class T>
  bool is_direct() const {
    return x_->dtype() == dtype_of<T>() && along_.rank == 1 && (along_.stride[0] == 1 || length_ <= 1);
  }

  const TensorImpl* x_;
  Layout kept_, along_;
  int64_t count_, length_;
};

/// Room for `rows` rows of a length, on the stack when they are short.
template <class T>
class RowTiles {
 public:
  RowTiles(int rows, int64_t length)
      : length_(length), more_(rows * length > kInline ? static_cast<size_t>(rows * length) : 0) {}
  T* operator[](int row) { return (more_.empty() ? inline_ : more_.data()) + row * length_; }

 private:
  static constexpr int64_t kInline = 1024;
  int64_t length_;
  T inline_[kInline];
  std::vector<T> more_;
};

}  // namespace retrograd::cpu
