// Grid: the last dims of a tensor as depth, height and width, all others as a list of volumes. Pooling and
// interpolation process it row by row, for every dtype and stride.
//
// direct() returns a row in place, if it has the requested type and no gaps; the row functions of
// cpu/kernels/levels/window_rows.h read a little beyond a row, hence the form that asks for slack after it. read()
// and write() copy a row and convert it. A missing dim has size 1, depth first.
#pragma once

#include <cstring>

#include "cpu/kernels/layout.h"

namespace retrograd::inline v0::cpu {

class Grid {
 public:
  /// The last `dims` dims of x, 1 to 3 of them; the missing ones, depth first, have size 1.
  Grid(const TensorImpl& x, int dims) : x_(&x), outer_(x, ~(~uint64_t{0} << (x.rank() - dims))) {
    for (int i = 0; i < dims; ++i) {
      size_[3 - dims + i] = x.shape()[x.rank() - dims + i].raw();
      stride_[3 - dims + i] = x.strides()[x.rank() - dims + i];
    }
  }

  int64_t volumes() const { return outer_.numel(); }
  int64_t depth() const { return size_[0]; }
  int64_t height() const { return size_[1]; }
  int64_t width() const { return size_[2]; }
  int64_t volume_size() const { return size_[0] * size_[1] * size_[2]; }

  /// The row in place; null unless it is contiguous in T.
  template <class T>
  T* direct(int64_t volume, int64_t d, int64_t h) const {
    const bool fits = x_->dtype() == dtype_of<T>() && (stride_[2] == 1 || size_[2] == 1);
    return fits ? static_cast<T*>(x_->data()) + offset(volume, d, h) : nullptr;
  }

  /// The same if `slack` elements after the row can also be read.
  template <class T>
  const T* direct(int64_t volume, int64_t d, int64_t h, int64_t slack) const {
    const T* const row = direct<T>(volume, d, h);
    const char* const end = static_cast<const char*>(x_->storage()->data()) + x_->storage()->nbytes();
    return row && reinterpret_cast<const char*>(row + size_[2] + slack) <= end ? row : nullptr;
  }

  /// Copies a row to `to`.
  template <class T>
  void read(int64_t volume, int64_t d, int64_t h, T* to) const {
    const int64_t n = size_[2], at = offset(volume, d, h), step = stride_[2];
    if (const T* from = direct<T>(volume, d, h)) {
      std::memcpy(to, from, static_cast<size_t>(n) * sizeof(T));
      return;
    }
    dispatch(x_->dtype(), [&]<class D>(std::type_identity<D>) {
      const D* from = static_cast<const D*>(x_->data()) + at;
      for (int64_t i = 0; i < n; ++i) to[i] = convert<T>(from[i * step]);
    });
  }

  /// Copies `from` to a row.
  template <class T>
  void write(int64_t volume, int64_t d, int64_t h, const T* from) const {
    const int64_t n = size_[2], at = offset(volume, d, h), step = stride_[2];
    dispatch(x_->dtype(), [&]<class D>(std::type_identity<D>) {
      D* to = static_cast<D*>(x_->data()) + at;
      for (int64_t i = 0; i < n; ++i) to[i * step] = convert<D>(from[i]);
    });
  }

 private:
  int64_t offset(int64_t volume, int64_t d, int64_t h) const {
    return outer_.offset(volume) + d * stride_[0] + h * stride_[1];
  }

  const TensorImpl* x_;
  Layout outer_;
  int64_t size_[3] = {1, 1, 1}, stride_[3] = {0, 0, 0};
};

}  // namespace retrograd::cpu
