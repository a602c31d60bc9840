// AffineLayout: weight and bias of a normalisation (ops/norms.h), seen from its rows.
//
// A row is cut into segments: the longest runs of its elements with a common number. There is one segment if weight
// and bias belong to kept dims, one per element if they belong to the last dims, and a number in between if they
// belong to the first dims of a row (group_norm).
#pragma once

#include "cpu/kernels/row_access.h"
#include "ops/norms.h"

namespace retrograd::inline v0::cpu {

/// The layout of a weight or bias, dense in the order of its dims, relative to the rows of x.
class AffineLayout {
 public:
  AffineLayout(const TensorImpl& x, const ops::NormalizeAttrs& a)
      : view_(spread(x, a.affine_dim)),
        kept_(*view_, ~dim_mask(a.dim)),
        segments_(*view_, segment_dims(x, a)),
        size_(1),
        is_shared_(true) {
    for (int64_t d : a.affine_dim) {
      const int64_t size = x.shape()[static_cast<int>(d)].raw();
      size_ *= size;
      if (size > 1 && !(dim_mask(a.dim) >> d & 1)) is_shared_ = false;
    }
  }
  /// Segments of a row.
  int64_t count() const { return segments_.numel(); }
  /// Elements of the weight.
  int64_t size() const { return size_; }
  /// Whether all rows have the same numbers.
  bool is_shared() const { return is_shared_; }

  /// Elements of a tile that of_row() needs.
  int64_t tile() const {
    return count() == 1 || (segments_.rank == 1 && segments_.stride[0] == 1) ? 0 : count();
  }
  /// The numbers of a row's segments, and of some rows of one segment each: in place, or gathered into
  /// `tile`.
  template <class T>
  const T* of_row(const T* p, int64_t row, T* tile) const {
    if (!p) return nullptr;
    p += kept_.offset(row);
    if (this->tile() > 0) gather(p, segments_, 0, count(), tile);
    return this->tile() > 0 ? tile : p;
  }
  template <class T>
  const T* of_rows(const T* p, int64_t begin, int64_t count, T* tile) const {
    if (!p) return nullptr;
    gather(p, kept_, begin, begin + count, tile);
    return tile;
  }
  /// sums[i] += found[s] for each segment s of a row, of element i.
  template <class T>
  void add(const T* found, int64_t row, double* sums) const {
    sums += kept_.offset(row);
    segments_.for_runs(0, count(), [&](int64_t offset, int64_t stride, int64_t n, int64_t at) {
      for (int64_t i = 0; i < n; ++i) sums[offset + i * stride] += static_cast<double>(found[at + i]);
    });
  }

 private:
  static RefPtr<TensorImpl> spread(const TensorImpl& x, const IntList& affine_dim) {
    RefPtr<TensorImpl> view = TensorImpl::make();
    view->mutable_shape() = x.shape();
    int64_t stride = 1;
    std::fill_n(view->mutable_strides(), x.rank(), 0);
    for (int i = affine_dim.size() - 1; i >= 0; --i) {
      view->mutable_strides()[affine_dim[i]] = stride;
      stride *= x.shape()[static_cast<int>(affine_dim[i])].raw();
    }
    return view;
  }

  // The dims of a row without those at its end that weight and bias do not have.
  static uint64_t segment_dims(const TensorImpl& x, const ops::NormalizeAttrs& a) {
    const uint64_t along = dim_mask(a.dim), both = along & dim_mask(a.affine_dim);
    uint64_t dims = 0;
    for (int d = 0; d < x.rank(); ++d)
      if (both >> d & 1) dims = along & ((uint64_t{2} << d) - 1);
    return dims;
  }

  RefPtr<TensorImpl> view_;
  Layout kept_, segments_;
  int64_t size_;
  bool is_shared_;
};

}  // namespace retrograd::cpu
