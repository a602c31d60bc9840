// The places that a coordinate of grid_sample reads, and their weights: the same for host and devices.
//
// A coordinate c of [-1, 1] stands at u = (c + 1) / 2 * (size - 1) of a dim with align_corners, else at
// ((c + 1) * size - 1) / 2. Bilinear weights are between two neighbours, cubic ones (Keys, a = -0.75) between four;
// nearest reads one, at a half the even one. What lies outside counts as 0, or is moved to the border, or is reflected:
// there at the outermost elements' centres (align_corners) or edges. u itself is moved, but for cubic weights each
// place. `order` is the number of derivatives by c that are taken of the weights; where u is moved to the border they
// are 0, also at it. A nan gives nan where zeros surround the input, and else the first place, as in PyTorch.
#pragma once

#include <cmath>
#include <cstdint>

#include "ops/host_device.h"

namespace retrograd::inline v0::ops {

enum class GridMode : int64_t { bilinear, nearest, bicubic };
enum class GridPadding : int64_t { zeros, border, reflection };

/// From this order on all derivatives of all weights are 0.
inline constexpr int kMostGridOrder = 4;

/// Up to four places in a dim.
template <class T>
struct GridTaps {
  int count = 0;
  int64_t at[4];
  T weight[4];
  RG_HD void add(int64_t place, T w) {
    at[count] = place;
    weight[count++] = w;
  }
};

/// A position, and its derivative by what it was computed from.
template <class T>
struct GridPlace {
  T at, slope;
};

template <class T>
RG_HD GridPlace<T> grid_clip(GridPlace<T> u, int64_t size) {
  const T last = static_cast<T>(size - 1);
  if (!(u.at > 0)) return {0, 0};
  return u.at >= last ? GridPlace<T>{last, 0} : u;
}

template <class T>
RG_HD GridPlace<T> grid_reflect(GridPlace<T> u, int64_t size, bool align_corners) {
  const T low = align_corners ? T(0) : T(-0.5), span = static_cast<T>(align_corners ? size - 1 : size);
  if (span <= 0) return {0, 0};
  T x = u.at - low, slope = u.slope;
  if (x < 0) {
    x = -x;
    slope = -slope;
  }
  const T rest = std::fmod(x, span), flips = std::floor(x / span);
  if (std::fmod(flips, T(2)) == 0) return {rest + low, slope};
  return {span - rest + low, -slope};
}

template <class T>
RG_HD GridPlace<T> grid_move(GridPlace<T> u, int64_t size, GridPadding padding, bool align_corners) {
  if (padding == GridPadding::zeros) return u;
  return grid_clip(padding == GridPadding::border ? u : grid_reflect(u, size, align_corners), size);
}

/// Derivative number `order` of the cubic weight at distance d from an element: up to 1, and from 1 to 2.
template <class T>
RG_HD T grid_cubic_near(T d, int order) {
  constexpr T a = T(-0.75);
  switch (order) {
    case 0: return ((a + 2) * d - (a + 3)) * d * d + 1;
    case 1: return (3 * (a + 2) * d - 2 * (a + 3)) * d;
    case 2: return 6 * (a + 2) * d - 2 * (a + 3);
    default: return order == 3 ? 6 * (a + 2) : 0;
  }
}
template <class T>
RG_HD T grid_cubic_far(T d, int order) {
  constexpr T a = T(-0.75);
  switch (order) {
    case 0: return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
    case 1: return (3 * a * d - 10 * a) * d + 8 * a;
    case 2: return 6 * a * d - 10 * a;
    default: return order == 3 ? 6 * a : 0;
  }
}

template <class T>
RG_HD GridTaps<T> grid_taps(T c, int64_t size, GridMode mode, GridPadding padding, bool align_corners,
                            int order) {
  GridTaps<T> taps;
  const T factor = static_cast<T>(align_corners ? size - 1 : size) / 2;
  GridPlace<T> u{align_corners ? (c + 1) * factor : (c + 1) * factor - T(0.5), factor};
  const T end = static_cast<T>(size);
  if (mode == GridMode::nearest) {
    u = grid_move(u, size, padding, align_corners);
    const T place = std::nearbyint(u.at);
    if (order == 0 && place >= 0 && place < end) taps.add(static_cast<int64_t>(place), 1);
    return taps;
  }
  if (padding == GridPadding::zeros && u.at != u.at) {
    taps.add(0, u.at);
    return taps;
  }
  if (mode == GridMode::bilinear) {
    u = grid_move(u, size, padding, align_corners);
    if (order > 1 || !(u.at > -1 && u.at < end)) return taps;
    const T floor = std::floor(u.at), rest = u.at - floor;
    const int64_t first = static_cast<int64_t>(floor);
    if (first >= 0) taps.add(first, order == 0 ? 1 - rest : -u.slope);
    if (first + 1 < size) taps.add(first + 1, order == 0 ? rest : u.slope);
    return taps;
  }
  T scale = 1;
  for (int i = 0; i < order; ++i) scale *= u.slope;
  const T floor = std::floor(u.at), rest = u.at - floor, turned = order % 2 == 0 ? scale : -scale;
  const T weights[4] = {scale * grid_cubic_far(1 + rest, order), scale * grid_cubic_near(rest, order),
                        turned * grid_cubic_near(1 - rest, order), turned * grid_cubic_far(2 - rest, order)};
  for (int i = 0; i < 4; ++i) {
    const T place =
        grid_move(GridPlace<T>{floor + static_cast<T>(i - 1), 1}, size, padding, align_corners).at;
    if (place >= 0 && place < end) taps.add(static_cast<int64_t>(place), weights[i]);
  }
  return taps;
}

}  // namespace retrograd::ops
