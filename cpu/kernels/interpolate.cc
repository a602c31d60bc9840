// Kernels of ops/interpolate.h: the weights along each axis, computed once, and the resulting linear map of grids
// (cpu/kernels/resample.h).
//
// There is a function that makes an Axis (cpu/kernels/windows.h) for each kind of mode: nearest, linear,
// cubic, antialias. interpolation_map() makes one for each dim, and the backward transposes them. Coordinates
// are computed in T, float or double, as PyTorch's CPU kernels do, so that elements on the border between two
// neighbours fall to the same side.
#include "ops/interpolate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "cpu/kernels/grid_maps.h"
#include "cpu/kernels/row_access.h"
#include "cpu/kernels/table.h"

namespace retrograd::inline v0::cpu {
namespace {

using ops::InterpolateMode;

struct AxisOptions {
  InterpolateMode mode;
  bool align_corners, antialias;
  double scale_factor;  // 0: by the sizes
};

// Elements of the operand that a step of the result goes.
template <class T>
T step_of(int64_t in, int64_t out, const AxisOptions& o) {
  if (o.align_corners) return out > 1 ? static_cast<T>(in - 1) / static_cast<T>(out - 1) : T(0);
  return o.scale_factor > 0 ? static_cast<T>(1 / o.scale_factor) : static_cast<T>(in) / static_cast<T>(out);
}

// The position of result j in the operand; possibly before its first element.
template <class T>
T source(T step, int64_t j, bool align_corners) {
  const T at = static_cast<T>(j);
  return align_corners ? step * at : step * (at + T(0.5)) - T(0.5);
}

// The element at or before a place, from `least` to the last one, whatever the scale of a run has made of the place.
template <class T>
int64_t element_at(T place, int64_t least, int64_t in) {
  return std::clamp(truncated(static_cast<double>(std::floor(place))), least, in - 1);
}

// In float32 for every dtype, and for the plain mode by halves where the size doubles: PyTorch's nearest_idx.
Axis nearest_axis(int64_t in, int64_t out, const AxisOptions& o) {
  if (o.mode == InterpolateMode::nearest && in == out) return identity_axis(in);
  const float step = step_of<float>(in, out, o);
  Axis axis{in, 1, {}, std::vector<int64_t>(out, 1), {}};
  for (int64_t j = 0; j < out; ++j) {
    float place = static_cast<float>(j) * step;
    if (o.mode == InterpolateMode::nearest_exact)
      place = static_cast<float>((static_cast<double>(j) + 0.5) * step);
    else if (out == 2 * in)
      place = static_cast<float>(j / 2);
    axis.first.push_back(element_at(place, 0, in));
  }
  return axis;
}

// The neighbour at or before a place, and the distance of the place from it, from 0 to 1.
template <class T>
struct Neighbour {
  int64_t at;
  T rest;
  Neighbour(T place, int64_t in)
      : at(element_at(place, -1, in)), rest(std::clamp(place - static_cast<T>(at), T(0), T(1))) {}
};

template <class T>
Axis linear_axis(int64_t in, int64_t out, const AxisOptions& o) {
  if (in == out) return identity_axis(in);
  const T step = step_of<T>(in, out, o);
  Axis axis{in, 1, {}, {}, {}};
  for (int64_t j = 0; j < out; ++j) {
    const Neighbour<T> near(std::max(T(0), source(step, j, o.align_corners)), in);
    const bool is_last = near.at == in - 1;
    axis.first.push_back(near.at);
    axis.count.push_back(is_last ? 1 : 2);
    axis.weight.push_back(is_last ? 1 : 1 - near.rest);
    if (!is_last) axis.weight.push_back(near.rest);
  }
  return axis;
}

// Cubic convolution (Keys 1981): weights of elements at distances d <= 1 and 1 < d < 2.
template <class T>
T cubic_near(T d, T a) {
  return ((a + 2) * d - (a + 3)) * d * d + 1;
}
template <class T>
T cubic_far(T d, T a) {
  return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
}

template <class T>
Axis cubic_axis(int64_t in, int64_t out, const AxisOptions& o) {
  const T step = step_of<T>(in, out, o), a = T(-0.75);
  Axis axis{in, 1, {}, {}, {}};
  for (int64_t j = 0; j < out; ++j) {
    const Neighbour<T> near(source(step, j, o.align_corners), in);
    const T t = near.rest,
            weights[] = {cubic_far(t + 1, a), cubic_near(t, a), cubic_near(1 - t, a), cubic_far(2 - t, a)};
    // Weights of neighbours outside are added to the border.
    const auto inside = [in](int64_t i) { return std::clamp<int64_t>(i, 0, in - 1); };
    const int64_t first = inside(near.at - 1), count = inside(near.at + 2) - first + 1;
    const size_t begin = axis.weight.size();
    axis.first.push_back(first);
    axis.count.push_back(count);
    axis.weight.resize(begin + static_cast<size_t>(count), 0);
    for (int64_t k = 0; k < 4; ++k)
      axis.weight[begin + static_cast<size_t>(inside(near.at - 1 + k) - first)] += weights[k];
  }
  return axis;
}

// The kernel of a mode at distance d, and its reach.
template <class T>
struct Filter {
  InterpolateMode mode;
  T reach() const {
    return mode == InterpolateMode::linear ? T(1) : mode == InterpolateMode::cubic ? T(2) : T(3);
  }
  T operator()(T d) const {
    d = std::abs(d);
    if (d >= reach()) return T(0);
    if (mode == InterpolateMode::linear) return 1 - d;
    if (mode == InterpolateMode::cubic) return d < 1 ? cubic_near(d, T(-0.5)) : cubic_far(d, T(-0.5));
    const T angle = std::numbers::pi_v<T> * d;
    return d == 0 ? T(1) : std::sin(angle) / angle * (std::sin(angle / 3) / (angle / 3));
  }
};

// The kernel widened to the step of the result, where that is more than an element. A dim that keeps its
// size is copied whatever the scale factor, as in PyTorch's forward.
template <class T>
Axis antialias_axis(int64_t in, int64_t out, const AxisOptions& o) {
  if (in == out) return identity_axis(in);
  const Filter<T> filter{o.mode};
  const T step = step_of<T>(in, out, o), wide = std::max(step, T(1)), reach = filter.reach() * wide;
  Axis axis{in, 1, {}, {}, {}};
  for (int64_t j = 0; j < out; ++j) {
    const T center = step * (static_cast<T>(j) + T(0.5));
    const int64_t first = element_at(center - reach + T(0.5), 0, in);
    const int64_t end = std::min(truncated(static_cast<double>(center + reach + T(0.5))), in);
    const int64_t count = std::max<int64_t>(end - first, 0);
    T total = 0;
    const size_t begin = axis.weight.size();
    for (int64_t k = 0; k < count; ++k) {
      const T weight = filter((static_cast<T>(k + first) - center + T(0.5)) / wide);
      axis.weight.push_back(weight);
      total += weight;
    }
    for (size_t i = begin; i < axis.weight.size(); ++i)
      if (total != 0) axis.weight[i] = static_cast<T>(axis.weight[i]) / total;
    axis.first.push_back(first);
    axis.count.push_back(count);
  }
  return axis;
}

template <class T>
Axis axis_of(int64_t in, int64_t out, const AxisOptions& o) {
  if (o.antialias) return antialias_axis<T>(in, out, o);
  if (o.mode == InterpolateMode::linear) return linear_axis<T>(in, out, o);
  if (o.mode == InterpolateMode::cubic) return cubic_axis<T>(in, out, o);
  return nearest_axis(in, out, o);
}

}  // namespace

GridMap interpolation_map(const ops::InterpolateAttrs& a, const TensorImpl& x, const TensorImpl& y) {
  GridMap map;
  map.dims = a.size.rank();
  for (int i = 3 - map.dims; i < 3; ++i) {
    const int64_t in = x.shape()[x.rank() - 3 + i].raw(), out = y.shape()[y.rank() - 3 + i].raw();
    const AxisOptions o{static_cast<InterpolateMode>(a.mode), a.align_corners, a.antialias,
                        a.scale_factor[i].to_double()};
    map.axes[i] = x.dtype() == kFloat64 ? axis_of<double>(in, out, o) : axis_of<float>(in, out, o);
  }
  return map;
}

namespace {

void interpolate(const Call& call, TensorImpl* const* outputs) {
  if (outputs[0]->numel().raw() == 0) return;
  const TensorImpl& x = *call.operands[0];
  resample(x, interpolation_map(call.attrs_as<ops::InterpolateAttrs>(), x, *outputs[0]), *outputs[0]);
}

void interpolate_backward(const Call& call, TensorImpl* const* outputs) {
  if (outputs[0]->numel().raw() == 0) return;
  const TensorImpl& g = *call.operands[0];
  GridMap map = interpolation_map(call.attrs_as<ops::InterpolateAttrs>(), *outputs[0], g);
  for (Axis& axis : map.axes) axis = transposed(axis);
  resample(g, map, *outputs[0]);
}

}  // namespace

void add_interpolate_kernels(KernelTable& table) {
  table.set(&ops::info<ops::Interpolate>, interpolate, KernelTable::kScratch);
  table.set(&ops::info<ops::InterpolateBackward>, interpolate_backward, KernelTable::kScratch);
}

}  // namespace retrograd::cpu
