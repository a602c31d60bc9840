// How kernels go through the elements of tensors that an index matches with elements of another: along lines, the
// elements of a dim for one choice of the other dims. Lines never meet, so they run in parallel and each one in order.
//
// An index has the rank of the tensors next to it, and no dim but the indexed one is larger than theirs. Its positions
// have been checked. An index of size 0 may have any rank: it has no lines.
#pragma once

#include <algorithm>

#include "cpu/kernels/index.h"
#include "cpu/parallel.h"

namespace retrograd::inline v0::cpu {

inline constexpr int64_t kTogether = 16;  // lines that lie side by side

// The lines of `index` along a dim, and of two tensors next to it. Lines that are adjacent in all three, such as the
// columns of matrices, are processed together: one by one, each would touch all cache lines of its neighbours. They may
// also share one line of the index, which repeats it.
class Lines {
 public:
  Lines(const TensorImpl& index, int64_t dim, const TensorImpl& a, const TensorImpl& b)
      : index_(index), a_(a), b_(b), dim_(static_cast<int>(dim)), last_(index.rank() - 1) {
    length_ = index.shape()[dim_].raw();
    count_ = length_ > 0 ? index.numel().raw() / length_ : 0;
    if (last_ == dim_ || index.strides()[last_] > 1 || a.strides()[last_] != 1 || b.strides()[last_] != 1)
      return;
    width_ = index.shape()[last_].raw();
    together_ = std::min(width_, kTogether);
  }

  /// Calls f(index offset, a's offset, b's offset, lines) for the first elements of neighbouring lines, in
  /// parallel.
  template <class F>
  void run(const F& f) const {
    const int64_t pieces = (width_ + together_ - 1) / together_, work = length_ * together_;
    parallel_range(count_ / width_ * pieces, std::max<int64_t>(1, kIndexGrain / std::max<int64_t>(1, work)),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t task = begin; task < end; ++task) {
                       const int64_t skip = task % pieces * together_;
                       place(task / pieces * width_ + skip, std::min(together_, width_ - skip), f);
                     }
                   });
  }

 private:
  template <class F>
  void place(int64_t line, int64_t lines, const F& f) const {
    int64_t at_index = 0, at_a = 0, at_b = 0;
    for (int d = last_; d >= 0; --d) {
      if (d == dim_) continue;
      const int64_t size = index_.shape()[d].raw(), i = line % size;
      line /= size;
      at_index += i * index_.strides()[d];
      at_a += i * a_.strides()[d];
      at_b += i * b_.strides()[d];
    }
    f(at_index, at_a, at_b, lines);
  }

  const TensorImpl &index_, &a_, &b_;
  int dim_, last_;
  int64_t length_, count_, width_ = 1, together_ = 1;
};

/// Calls f(place in out, place in src) for each element of src that the index covers, in the order of lines; places
/// count elements from the first.
template <class F>
void for_each_target(const TensorImpl& index, int dim, const TensorImpl& src, const TensorImpl& out,
                     const F& f) {
  if (index.numel().raw() == 0) return;
  const int64_t length = index.shape()[dim].raw(), step = index.strides()[dim], out_step = out.strides()[dim],
                src_step = src.strides()[dim], across = index.strides()[index.rank() - 1];
  Lines(index, dim, src, out).run([&](int64_t at_index, int64_t at_src, int64_t at_out, int64_t lines) {
    const int64_t* p = positions(index) + at_index;
    if (lines == 1)
      for (int64_t i = 0; i < length; ++i) f(at_out + p[i * step] * out_step, at_src + i * src_step);
    else
      for (int64_t i = 0; i < length; ++i)
        for (int64_t k = 0; k < lines; ++k)
          f(at_out + p[i * step + k * across] * out_step + k, at_src + i * src_step + k);
  });
}

}  // namespace retrograd::cpu
