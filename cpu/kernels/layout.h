// Layout: a strided tensor, or some of its dims, as a sequence of elements; and gather and scatter, which
// copy between such a sequence and a dense tile of a compute type, converting the dtype.
//
// Invariants: dims of size 1 are left out and adjacent dims merged where memory allows, so most tensors have
// rank 1; rank is at least 1; a tensor without elements has a dim of size 0. Elements are numbered in
// row-major order of the dims taken, and offsets count elements.
#pragma once

#include <algorithm>

#include "cpu/kernels/levels/copy_rows.h"
#include "engine/tensor_impl.h"
#include "ops/convert.h"

namespace retrograd::inline v0::cpu {

struct Layout {
  int rank = 0;
  int64_t size[kMaxRank], stride[kMaxRank];

  explicit Layout(const TensorImpl& x) : Layout(x, ~uint64_t{0}) {}

  /// The dims whose bit is set in `dims`.
  Layout(const TensorImpl& x, uint64_t dims) {
    for (int i = 0; i < x.rank(); ++i)
      if (dims >> i & 1) add(x.shape()[i].raw(), x.strides()[i]);
    finish();
  }

  /// `x` broadcast to `shape`.
  Layout(const TensorImpl& x, const Shape& shape) {
    const int skip = shape.rank() - x.rank();
    for (int i = 0; i < shape.rank(); ++i) {
      const bool repeated = i < skip || x.shape()[i - skip].raw() == 1;
      add(shape[i].raw(), repeated ? 0 : x.strides()[i - skip]);
    }
    finish();
  }

  int64_t numel() const {
    int64_t n = 1;
    for (int d = 0; d < rank; ++d) n *= size[d];
    return n;
  }

  int64_t offset(int64_t element) const {
    int64_t sum = 0;
    for (int d = rank - 1; d > 0; --d) {
      sum += element % size[d] * stride[d];
      element /= size[d];
    }
    return sum + element * stride[0];
  }

  /// Calls f(offset, stride, count, at) for the pieces of elements [begin, end) within one run of the last dim; `at`
  /// counts from begin.
  template <class F>
  void for_runs(int64_t begin, int64_t end, F&& f) const {
    if (begin >= end) return;  // a size may be 0 then
    int64_t index[kMaxRank], offset = 0, rest = begin;
    for (int d = rank - 1; d >= 0; --d) {
      index[d] = rest % size[d];
      rest /= size[d];
      offset += index[d] * stride[d];
    }
    const int last = rank - 1;
    for (int64_t at = begin; at < end;) {
      const int64_t count = std::min(size[last] - index[last], end - at);
      f(offset, stride[last], count, at - begin);
      at += count;
      offset += count * stride[last];
      index[last] += count;
      for (int d = last; d > 0 && index[d] == size[d]; --d) {
        offset += stride[d - 1] - size[d] * stride[d];
        index[d] = 0;
        ++index[d - 1];
      }
    }
  }

 private:
  void add(int64_t n, int64_t s) {
    if (n == 1) return;
    if (rank > 0 && stride[rank - 1] == n * s) {
      size[rank - 1] *= n;
      stride[rank - 1] = s;
    } else {
      size[rank] = n;
      stride[rank++] = s;
    }
  }
  void finish() {
    if (rank > 0) return;
    size[0] = 1;
    stride[rank++] = 1;
  }
};

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

/// The dtype of that type: kFloat64, kFloat32 or kInt64.
inline ScalarType compute_type(ScalarType dtype) {
  if (dtype == kFloat64) return kFloat64;
  return is_floating(dtype) ? kFloat32 : kInt64;
}

/// Elements [begin, end) of `layout` at `base`, into tile[0], tile[1], ...
template <class To, class From>
void gather(const From* base, const Layout& layout, int64_t begin, int64_t end, To* tile) {
  const auto load = convert_table<To>().load[static_cast<int>(dtype_of<From>())];
  layout.for_runs(begin, end, [&](int64_t offset, int64_t stride, int64_t count, int64_t at) {
    load(base + offset, stride, count, tile + at);
  });
}

/// The reverse of gather.
template <class To, class From>
void scatter(const From* tile, To* base, const Layout& layout, int64_t begin, int64_t end) {
  const auto store = convert_table<From>().store[static_cast<int>(dtype_of<To>())];
  layout.for_runs(begin, end, [&](int64_t offset, int64_t stride, int64_t count, int64_t at) {
    store(tile + at, count, base + offset, stride);
  });
}

/// True when no two indices of the region show one element: sorted by stride, each dim steps over all smaller ones.
inline bool is_injective(const TensorImpl& region) {
  int order[kMaxRank], count = 0;
  for (int i = 0; i < region.rank(); ++i) {
    if (region.shape()[i].raw() == 1) continue;
    int at = count++;
    for (; at > 0 && region.strides()[order[at - 1]] > region.strides()[i]; --at) order[at] = order[at - 1];
    order[at] = i;
  }
  int64_t reach = 0;
  for (int k = 0; k < count; ++k) {
    const int64_t stride = region.strides()[order[k]];
    if (stride <= reach) return false;
    reach += stride * (region.shape()[order[k]].raw() - 1);
  }
  return true;
}

}  // namespace retrograd::cpu
