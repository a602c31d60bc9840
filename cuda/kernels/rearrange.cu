// Triangles of matrices, padding, and the transpose of padding. A thread computes one element of the result. The entry
// that a padded entry shows is a formula of its position, so there are no tables. Backward, a thread goes over the
// entries that show its own, in row-major order, so that sums depend only on sizes.
#include "cuda/kernels/rearrange_call.h"

#include "cuda/kernels/launch.h"
#include "cuda/kernels/launchers.h"
// Included after it, since it needs RG_TARGET.
#include "cuda/kernels/grid.h"

namespace retrograd::inline v0::cuda::RG_TARGET {
namespace {

template <class T>
__global__ void __launch_bounds__(kThreads)
    triangle_kernel(const TriangleCall call, const StridedGrid<1> grid, const Divider columns,
                    const Divider rows) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < grid.numel; i += step) {
    const int64_t line = columns(i), column = i - line * call.columns, row = line - rows(line) * call.rows;
    const bool is_kept = call.upper ? column >= row + call.diagonal : column <= row + call.diagonal;
    static_cast<T*>(call.out)[i] =
        is_kept ? static_cast<const T*>(call.x)[Offsets<1>(grid, i)[0]] : static_cast<T>(0);
  }
}

void launch_triangle(const TriangleCall& call, StreamHandle stream) {
  const int64_t n = call.dims.numel;
  by_width(call.width, [&](auto bits) {
    using T = decltype(bits);
    if constexpr (sizeof(T) <= 8)
      launch(triangle_kernel<T>, threads_for(n), stream, call, grid_of(call.dims), Divider(call.columns, n),
             Divider(call.rows, n));
  });
}

// The dims of a PadCall by which the result's elements are numbered. For circular ones: entry i shows entry (i + turn)
// % kept of the kept ones.
struct PadGrid {
  Divider size[kMaxDims], kept[kMaxDims];
  int64_t turn[kMaxDims];
};

// The entry of dim k that entry i of the padded one shows.
RG_HD int64_t shown_entry(const PadCall& call, const PadGrid& grid, int k, int64_t i) {
  const PadDim& d = call.dim[k];
  const int64_t at = i - d.before, last = d.small - 1;
  if (call.mode == PadMode::replicate) return at < 0 ? 0 : at > last ? last : at;
  if (call.mode == PadMode::reflect) return at < 0 ? -at : at > last ? 2 * last - at : at;
  const int64_t turned = i + grid.turn[k];
  return d.first + turned - grid.kept[k](turned) * d.kept;
}

// The first entry of padded dim k after `behind` (-1, or one of them) that shows s; its size when there is none.
RG_HD int64_t next_showing(const PadCall& call, const PadGrid& grid, int k, int64_t s, int64_t behind) {
  const PadDim& d = call.dim[k];
  const PadMode mode = call.mode;
  const int64_t last = d.small - 1;
  int64_t found = d.large;
  if (mode == PadMode::replicate) {
    const int64_t from = s == 0 || s + d.before < 0 ? 0 : s + d.before,
                  to = s == last ? d.large - 1 : s + d.before;
    found = behind + 1 > from ? behind + 1 : from;
    return found <= to && found < d.large ? found : d.large;
  }
  if (mode == PadMode::circular) {
    if (s < d.first || s >= d.first + d.kept) return d.large;
    const int64_t turned = s - d.first + d.kept - grid.turn[k];  // turn <= kept
    found = behind < 0 ? turned - grid.kept[k](turned) * d.kept : behind + d.kept;
    return found < d.large ? found : d.large;
  }
  const int64_t mirrored[3] = {s > 0 ? d.before - s : -1, d.before + s,
                               s < last ? d.before + 2 * last - s : -1};
  for (int k = 2; k >= 0; --k)
    if (mirrored[k] > behind && mirrored[k] >= 0 && mirrored[k] < d.large) found = mirrored[k];
  return found;
}

template <class T>
__global__ void __launch_bounds__(kThreads) pad_kernel(const PadCall call, const PadGrid grid) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < call.numel; i += step) {
    int64_t rest = i, from = 0;
    for (int d = call.rank - 1; d >= 0; --d) {
      const int64_t q = grid.size[d](rest);
      from += shown_entry(call, grid, d, rest - q * call.dim[d].large) * call.dim[d].stride;
      rest = q;
    }
    static_cast<T*>(call.out)[i] = static_cast<const T*>(call.x)[from];
  }
}

template <class C>
__global__ void __launch_bounds__(kThreads) pad_backward_kernel(const PadCall call, const PadGrid grid) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < call.numel; i += step) {
    int64_t entry[kMaxDims], at[kMaxDims], rest = i, from = 0;
    bool is_shown = true;
    for (int d = call.rank - 1; d >= 0; --d) {
      const int64_t q = grid.size[d](rest);
      entry[d] = rest - q * call.dim[d].small;
      rest = q;
      at[d] = next_showing(call, grid, d, entry[d], -1);
      is_shown = is_shown && at[d] < call.dim[d].large;
      from += at[d] * call.dim[d].stride;
    }
    C sum = 0;
    for (int d = 0; is_shown && d >= 0;) {
      sum += load<C>(call.x, call.element, from);
      for (d = call.rank - 1; d >= 0; --d) {
        int64_t next = next_showing(call, grid, d, entry[d], at[d]);
        const bool is_over = next >= call.dim[d].large;
        if (is_over) next = next_showing(call, grid, d, entry[d], -1);
        from += (next - at[d]) * call.dim[d].stride;
        at[d] = next;
        if (!is_over) break;
      }
    }
    store<C>(call.out, call.element, i, sum);
  }
}

PadGrid pad_grid(const PadCall& call, int64_t PadDim::*size) {
  PadGrid grid{};
  for (int k = 0; k < call.rank; ++k) {
    const PadDim& d = call.dim[k];
    grid.size[k] = Divider(d.*size, call.numel);
    if (call.mode != PadMode::circular || d.kept == 0) continue;
    const int64_t before = d.before > 0 ? d.before : 0;
    grid.turn[k] = (d.kept - before % d.kept) % d.kept;
    grid.kept[k] = Divider(d.kept, d.large + d.small + d.kept);
  }
  return grid;
}

void launch_pad(const PadCall& call, StreamHandle stream) {
  by_width(call.width, [&](auto bits) {
    using T = decltype(bits);
    if constexpr (sizeof(T) <= 8)
      launch(pad_kernel<T>, threads_for(call.numel), stream, call, pad_grid(call, &PadDim::large));
  });
}

template <class C>
void launch_pad_backward(const PadCall& call, StreamHandle stream) {
  launch(pad_backward_kernel<C>, threads_for(call.numel), stream, call, pad_grid(call, &PadDim::small));
}

}  // namespace

void add_rearrange_launchers(Launchers& all) {
  static constexpr RearrangeLaunchers own{launch_triangle, launch_pad, launch_pad_backward<float>,
                                          launch_pad_backward<double>, launch_pad_backward<int64_t>};
  all.rearrange = &own;
}

}  // namespace retrograd::cuda::RG_TARGET
