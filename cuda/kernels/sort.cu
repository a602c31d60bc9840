// Sorting of lines: see cuda/kernels/sort_call.h. A block sorts a run, or several short lines, by Batcher's
// bitonic network in shared memory (Sorting networks and their applications, 1968). Runs are merged by rank:
// an entry's place in the merged run is its place in its own and the number of entries of the other that come
// before it, found by bisection. All of it depends on sizes alone.
#include "cuda/kernels/sort_call.h"

#include "cuda/kernels/launch.h"
// Behind it, since it asks for the target.
#include "cuda/kernels/grid.h"

namespace retrograd::cuda::RG_TARGET {
namespace {

struct Narrow {
  uint64_t bits;
  RG_HD static Narrow of(uint64_t key, int64_t place) { return {(key << 32) | static_cast<uint64_t>(place)}; }
  RG_HD static Narrow last() { return {~uint64_t{0}}; }
  RG_HD int64_t place() const { return static_cast<int64_t>(bits & 0xffffffffu); }
  RG_HD bool operator<(const Narrow& b) const { return bits < b.bits; }
};

struct Wide {
  uint64_t key, where;
  RG_HD static Wide of(uint64_t key, int64_t place) { return {key, static_cast<uint64_t>(place)}; }
  RG_HD static Wide last() { return {~uint64_t{0}, ~uint64_t{0}}; }
  RG_HD int64_t place() const { return static_cast<int64_t>(where); }
  RG_HD bool operator<(const Wide& b) const { return key != b.key ? key < b.key : where < b.where; }
};

// Nan is the largest, -0 is 0.
template <class U, class T>
RG_HD U key_of_float(T v) {
  constexpr U sign = U{1} << (8 * sizeof(U) - 1);
  if (v != v) return static_cast<U>(~U{0});
  if (v == 0) return sign;
  U bits;
  std::memcpy(&bits, &v, sizeof(bits));
  return bits & sign ? static_cast<U>(~bits) : static_cast<U>(bits | sign);
}

RG_HD uint64_t key_of(const SortCall& call, int64_t at) {
  constexpr uint64_t low = 0xffffffffu;
  uint64_t key, all = low;
  switch (call.element) {
    case Element::f64:
      key = key_of_float<uint64_t>(static_cast<const double*>(call.x)[at]);
      all = ~uint64_t{0};
      break;
    case Element::i64:
      key = static_cast<uint64_t>(static_cast<const int64_t*>(call.x)[at]);
      if (call.is_plain) return key & low;
      key ^= uint64_t{1} << 63;
      all = ~uint64_t{0};
      break;
    case Element::i32:
    case Element::u8:
    case Element::b8:
      key = static_cast<uint64_t>(load<int64_t>(call.x, call.element, at) + (int64_t{1} << 31));
      break;
    default: key = key_of_float<uint32_t>(load<float>(call.x, call.element, at));
  }
  return call.descending ? ~key & all : key;
}

// How lines are cut, in numbers that are known before the launch.
struct SortGrid {
  StridedGrid<2> lines;
  Divider runs;  // of a line
  int64_t run, pitch, runs_of_line, all_runs;
};

// Block b: entries [b * kSortTile, ...) of all runs, one behind the other, each filled up to its whole
// length.
template <class E>
__global__ void __launch_bounds__(kThreads) tile_kernel(const SortCall call, const SortGrid grid) {
  __shared__ E tile[kSortTile];
  const int run = static_cast<int>(grid.run);
  const int64_t first = static_cast<int64_t>(blockIdx.x) * (kSortTile / run);
  for (int s = static_cast<int>(threadIdx.x); s < kSortTile; s += kThreads) {
    const int64_t r = first + s / run, line = r < grid.all_runs ? grid.runs(r) : 0;
    const int64_t at = (r - line * grid.runs_of_line) * grid.run + s % run;
    E e = E::last();
    if (r < grid.all_runs && at < call.length)
      e = E::of(key_of(call, Offsets<2>(grid.lines, line)[0] + at * call.x_step), at);
    tile[s] = e;
  }
  for (int size = 2; size <= run; size *= 2)
    for (int stride = size / 2; stride > 0; stride /= 2) {
      __syncthreads();
      for (int pair = static_cast<int>(threadIdx.x); pair < kSortTile / 2; pair += kThreads) {
        const int low = 2 * pair - (pair & (stride - 1)), high = low + stride;
        const bool ascends = (low & (run - 1) & size) == 0;
        const E a = tile[low], b = tile[high];
        if ((b < a) != ascends) continue;
        tile[low] = b;
        tile[high] = a;
      }
    }
  __syncthreads();
  E* const out = static_cast<E*>(call.entries[0]);
  for (int s = static_cast<int>(threadIdx.x); s < kSortTile; s += kThreads) {
    const int64_t r = first + s / run;
    if (r < grid.all_runs && s % run < grid.pitch) out[r * grid.pitch + s % run] = tile[s];
  }
}

// A pass of merging. `span`: elements of the line that a run is of; `pitch`: its place in memory.
struct Merge {
  const void* from;
  void* to;
  int64_t length, span, pitch, runs, merged_pitch, merged_runs, numel;
  Divider of_run, of_line;

  RG_HD int64_t entries_of(int64_t run) const {
    const int64_t rest = length - run * span, own = rest < span ? rest : span;
    return own < pitch ? own : pitch;
  }
};

template <class E>
__global__ void __launch_bounds__(kThreads) merge_kernel(const Merge merge) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < merge.numel; i += step) {
    const int64_t run = merge.of_run(i), line = merge.of_line(run), r = run - line * merge.runs;
    const int64_t at = i - run * merge.pitch;
    if (at >= merge.entries_of(r)) continue;
    const E* const all = static_cast<const E*>(merge.from);
    const E e = all[i];
    const int64_t mate = r ^ 1;
    const E* const others = all + (line * merge.runs + mate) * merge.pitch;
    int64_t low = 0, high = mate < merge.runs ? merge.entries_of(mate) : 0;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (others[middle] < e)
        low = middle + 1;
      else
        high = middle;
    }
    const int64_t rank = at + low;
    if (rank < merge.merged_pitch)
      static_cast<E*>(merge.to)[(line * merge.merged_runs + r / 2) * merge.merged_pitch + rank] = e;
  }
}

template <class E>
__global__ void __launch_bounds__(kThreads)
    finish_kernel(const SortCall call, const SortGrid grid, const void* entries, const Divider of_line) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads, numel = grid.lines.numel * call.count;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < numel; i += step) {
    const int64_t line = of_line(i);
    const Offsets<2> at(grid.lines, line);
    const int64_t place = static_cast<const E*>(entries)[i].place();
    const int64_t to = at[1] + (i - line * call.count) * call.result_step, from = at[0] + place * call.x_step;
    call.places[to] = place;
    if (!call.values) continue;
    switch (call.width) {
      case 1: static_cast<uint8_t*>(call.values)[to] = static_cast<const uint8_t*>(call.x)[from]; break;
      case 2: static_cast<uint16_t*>(call.values)[to] = static_cast<const uint16_t*>(call.x)[from]; break;
      case 4: static_cast<uint32_t*>(call.values)[to] = static_cast<const uint32_t*>(call.x)[from]; break;
      default: static_cast<uint64_t*>(call.values)[to] = static_cast<const uint64_t*>(call.x)[from];
    }
  }
}

template <class E>
void sort_lines(const SortCall& call, StreamHandle stream) {
  const int64_t lines = call.lines.numel, all_runs = lines * call.runs(), of_block = kSortTile / call.run();
  const SortGrid grid{
      grid_of(call.lines), Divider(call.runs(), all_runs), call.run(), call.pitch(), call.runs(), all_runs};
  launch(tile_kernel<E>, {static_cast<unsigned>((all_runs + of_block - 1) / of_block)}, stream, call, grid);
  int from = 0;
  Merge merge{};
  merge.length = call.length;
  merge.span = call.run();
  merge.pitch = call.pitch();
  for (merge.runs = call.runs(); merge.runs > 1; merge.runs = merge.merged_runs, from = 1 - from) {
    merge.from = call.entries[from];
    merge.to = call.entries[1 - from];
    merge.merged_runs = (merge.runs + 1) / 2;
    merge.merged_pitch = 2 * merge.pitch < call.count ? 2 * merge.pitch : call.count;
    merge.numel = lines * merge.runs * merge.pitch;
    merge.of_run = Divider(merge.pitch, merge.numel);
    merge.of_line = Divider(merge.runs, lines * merge.runs);
    launch(merge_kernel<E>, threads_for(merge.numel), stream, merge);
    merge.span *= 2;
    merge.pitch = merge.merged_pitch;
  }
  const int64_t numel = lines * call.count;
  const void* sorted = call.entries[from];
  launch(finish_kernel<E>, threads_for(numel), stream, call, grid, sorted, Divider(call.count, numel));
}

void launch_sort(const SortCall& call, StreamHandle stream) {
  call.is_wide ? sort_lines<Wide>(call, stream) : sort_lines<Narrow>(call, stream);
}

}  // namespace

const SortLaunchers& sort_launchers() {
  static constexpr SortLaunchers all{launch_sort};
  return all;
}

}  // namespace retrograd::cuda::RG_TARGET
