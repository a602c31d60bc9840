// The axes of pooling and interpolation: see cpu/kernels/windows.h.
//
// Members of Axis, the functions that make one, its transpose, and WindowArrays, which lays an axis out as
// the row functions of cpu/kernels/levels/window_rows.h take it: arrays padded to whole registers, weights
// tap by tap. Those functions exist per instruction-set level for float and double; for int64_t they are the
// plain loops at the end of this file, the same at every level.
#include "cpu/kernels/windows.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace retrograd::inline v0::cpu {

int64_t Axis::taps() const { return count.empty() ? 0 : *std::max_element(count.begin(), count.end()); }

bool Axis::is_identity() const {
  if (out() != in || !weight.empty()) return false;
  for (int64_t j = 0; j < in; ++j)
    if (first[j] != j || count[j] != 1) return false;
  return true;
}

Axis::Reach Axis::reach(int64_t begin, int64_t end) const {
  Reach reach{first[begin], first[begin]};
  for (int64_t j = begin; j < end; ++j) {
    reach.begin = std::min(reach.begin, first[j]);
    reach.end = std::max(reach.end, first[j] + (count[j] > 0 ? (count[j] - 1) * step + 1 : 0));
  }
  return reach;
}

int64_t Axis::widest_band(int64_t size) const {
  int64_t widest = 0;
  for (int64_t j = 0; j < out(); j += size) {
    const Reach band = reach(j, std::min(j + size, out()));
    widest = std::max(widest, band.end - band.begin);
  }
  return widest;
}

Axis identity_axis(int64_t size) { return window_axis(size, size, 1, 1, 0, 1); }

Axis window_axis(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation) {
  Axis axis{in, dilation, std::vector<int64_t>(out), std::vector<int64_t>(out), {}};
  for (int64_t j = 0; j < out; ++j) {
    const int64_t begin = j * stride - padding, before = begin < 0 ? (-begin + dilation - 1) / dilation : 0;
    const int64_t first = begin + before * dilation;
    const int64_t inside = first < in ? (in - 1 - first) / dilation + 1 : 0;
    axis.first[j] = std::min(first, std::max<int64_t>(in - 1, 0));
    axis.count[j] = std::clamp<int64_t>(kernel - before, 0, inside);
  }
  return axis;
}

Axis adaptive_axis(int64_t in, int64_t out) {
  Axis axis{in, 1, std::vector<int64_t>(out), std::vector<int64_t>(out), {}};
  for (int64_t j = 0; j < out; ++j) {
    // i * in / out rounded down, without a product that could overflow; the end is rounded up.
    const auto scaled = [=](int64_t i) { return i * (in / out) + i * (in % out) / out; };
    const int64_t end = scaled(j + 1) + ((j + 1) * (in % out) % out != 0);
    axis.first[j] = scaled(j);
    axis.count[j] = end - axis.first[j];
  }
  return axis;
}

Axis transposed(const Axis& axis) {
  const int64_t rows = axis.out();
  Axis t{rows, 1, std::vector<int64_t>(axis.in), std::vector<int64_t>(axis.in), {}};
  std::vector<int64_t> offset(axis.count.size());  // of a result's weights
  std::exclusive_scan(axis.count.begin(), axis.count.end(), offset.begin(), int64_t{0});
  int64_t begin = 0, end = 0;
  for (int64_t i = 0; i < axis.in; ++i) {
    while (end < rows && axis.first[end] <= i) ++end;
    while (begin < end && axis.first[begin] + axis.count[begin] <= i) ++begin;
    t.first[i] = std::min(begin, std::max<int64_t>(rows - 1, 0));
    t.count[i] = end - begin;
    if (axis.weight.empty()) continue;
    for (int64_t j = begin; j < end; ++j) t.weight.push_back(axis.weight[offset[j] + i - axis.first[j]]);
  }
  return t;
}

template <class T>
WindowArrays<T>::WindowArrays(const Axis& axis) {
  const int64_t out = axis.out(), padded = (out + kWindowPadding - 1) / kWindowPadding * kWindowPadding;
  const int64_t taps = axis.taps();
  first_.assign(static_cast<size_t>(padded), out > 0 ? static_cast<LaneOf<T>>(axis.first.back()) : 0);
  count_.assign(static_cast<size_t>(padded), out > 0 ? static_cast<LaneOf<T>>(axis.count.back()) : 0);
  std::copy(axis.first.begin(), axis.first.end(), first_.begin());
  std::copy(axis.count.begin(), axis.count.end(), count_.begin());
  if (!axis.weight.empty()) {
    weight_.assign(static_cast<size_t>(padded * taps), T(0));
    const double* from = axis.weight.data();
    for (int64_t j = 0; j < out; ++j)
      for (int64_t k = 0; k < axis.count[j]; ++k) weight_[k * padded + j] = static_cast<T>(*from++);
  }
  const int64_t sure = out > 0 ? *std::min_element(axis.count.begin(), axis.count.end()) : 0;
  const bool ordered = std::is_sorted(axis.first.begin(), axis.first.end());
  bool halving = axis.step == 1 && sure == taps && out > 0;
  for (int64_t j = 0; j < out; ++j) halving &= axis.first[j] == axis.first[0] + 2 * j;
  windows_ = {axis.in,       out,           axis.step, taps,    sure,
              first_.data(), count_.data(), ordered,   halving, weight_.empty() ? nullptr : weight_.data(),
              padded};
}

template class WindowArrays<float>;
template class WindowArrays<double>;
template class WindowArrays<int64_t>;

namespace {

// Integers wrap around, as in ops/integers.h.
int64_t sum(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

void combine(const int64_t* x, const Windows<int64_t>& w, int64_t* y) {
  for (int64_t j = 0; j < w.out; ++j) {
    y[j] = 0;
    for (int64_t k = 0; k < w.count[j]; ++k) y[j] = sum(y[j], x[w.first[j] + k * w.step]);
  }
}

void add_rows(const int64_t* const* rows, const int64_t*, int64_t, int64_t count, int64_t n, int64_t* y) {
  std::fill_n(y, n, 0);
  for (int64_t k = 0; k < count; ++k)
    for (int64_t i = 0; i < n; ++i) y[i] = sum(y[i], rows[k][i]);
}

void divide(const int64_t* x, const int64_t* by, int64_t scale, int64_t n, int64_t* y) {
  for (int64_t i = 0; i < n; ++i) {
    const int64_t divisor = by[i] * scale;
    y[i] = divisor == -1 ? sum(~x[i], 1) : x[i] / divisor;
  }
}

void max_rows(const int64_t* const* rows, const int64_t* place, int64_t count, const Windows<int64_t>& w,
              int64_t* values, int64_t* places) {
  for (int64_t j = 0; j < w.out; ++j) {
    values[j] = std::numeric_limits<int64_t>::min();
    places[j] = place[0] + w.first[j];
    for (int64_t r = 0; r < count; ++r)
      for (int64_t k = 0, i = w.first[j]; k < w.count[j]; ++k, i += w.step)
        if (rows[r][i] > values[j]) {
          values[j] = rows[r][i];
          places[j] = place[r] + i;
        }
  }
}

}  // namespace

template <>
const WindowTable<int64_t>& window_table<int64_t>() {
  static constexpr WindowTable<int64_t> table{combine, add_rows, divide, max_rows};
  return table;
}

}  // namespace retrograd::cpu
