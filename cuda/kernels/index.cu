// Kernels that read and write at positions in a tensor: see cuda/kernels/index_call.h. An index out of range reads as
// zero, writes nothing and is recorded (cuda/faults.h). The thread whose position is the first of its target does all
// reductions, in order; floats are never added by atomics. The maximum of integers, which is independent of order,
// determines which of several positions writes last.
#include "cuda/kernels/index_call.h"

#include "cuda/kernels/launch.h"
#include "cuda/kernels/launchers.h"
// Included after it, since it needs RG_TARGET.
#include "cuda/kernels/grid.h"
#include "cuda/kernels/note.h"
#include "ops/sorted_search.h"

namespace retrograd::inline v0::cuda::RG_TARGET {
namespace {

template <class T>
__global__ void __launch_bounds__(kThreads) gather_kernel(const GatherCall call, const StridedGrid<2> grid) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < grid.numel; i += step) {
    const Offsets<2> at(grid, i);
    const int64_t entry = call.index[at[0]];
    T v{};
    if (is_in_range(entry, call.entries, call.note) && entry != call.blank)
      v = static_cast<const T*>(call.x)[at[1] + entry * call.step];
    static_cast<T*>(call.out)[i] = v;
  }
}

void launch_gather(const GatherCall& call, StreamHandle stream) {
  by_width(call.width, [&](auto bits) {
    launch(gather_kernel<decltype(bits)>, threads_for(call.dims.numel), stream, call, grid_of(call.dims));
  });
}

__global__ void __launch_bounds__(kThreads) target_kernel(const TargetCall call, const StridedGrid<2> grid) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t p = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; p < grid.numel; p += step) {
    const Offsets<2> at(grid, p);
    int64_t target = at[1];
    if (call.index) {
      const int64_t entry = call.index[at[0]];
      const bool goes = is_in_range(entry, call.entries, call.note) && entry != call.skip;
      target = goes ? target + entry * call.step : kNowhere;
    }
    call.target[p] = target;
  }
}

void launch_target(const TargetCall& call, StreamHandle stream) {
  launch(target_kernel, threads_for(call.positions.numel), stream, call, grid_of(call.positions));
}

__global__ void __launch_bounds__(kThreads) flat_kernel(const FlatCall call, const StridedGrid<1> grid) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < grid.numel; i += step) {
    const int64_t given = call.index[Offsets<1>(grid, i)[0]], entry = given < 0 ? given + call.size : given;
    const bool is_there = entry >= 0 && entry < call.size;
    if (!is_there) is_in_range(given, call.size, call.note);
    call.out[i] = (call.is_first ? 0 : call.out[i] * call.size) + (is_there ? entry : 0);
  }
}

void launch_flat(const FlatCall& call, StreamHandle stream) {
  launch(flat_kernel, threads_for(call.dims.numel), stream, call, grid_of(call.dims));
}

// ---- writing ----------------------------------------------------------------------------------------------

__global__ void __launch_bounds__(kThreads) clear_kernel(unsigned* words, int64_t n) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < n; i += step) words[i] = 0;
}

__global__ void __launch_bounds__(kThreads) claim_kernel(const PutCall call) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t p = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; p < call.positions.numel;
       p += step)
    if (call.target[p] >= 0) atomicMax(call.winner + call.target[p], static_cast<unsigned>(p + 1));
}

// Threads are numbered by position and, within a position, by the elements of a part.
struct PutGrid {
  StridedGrid<1> positions;
  StridedGrid<2> rest;
  Divider part;
  int64_t numel;
};

PutGrid put_grid(const PutCall& call) {
  const int64_t numel = call.positions.numel * call.rest.numel;
  return {grid_of(call.positions), grid_of(call.rest), Divider(call.rest.numel, numel), numel};
}

// Threads with the same target write the same number: their order does not matter.
template <class T>
__device__ void put_number(T number, T* to) {
#if defined(__CUDACC__)
  *to = number;
#else
  __atomic_store_n(to, number, __ATOMIC_RELAXED);
#endif
}

template <class T>
__global__ void __launch_bounds__(kThreads) write_kernel(const PutCall call, const PutGrid grid, T number) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < grid.numel; i += step) {
    const int64_t p = grid.part(i), target = call.target[p];
    if (target < 0 || (call.winner && call.winner[target] != p + 1)) continue;
    const Offsets<2> at(grid.rest, i - p * grid.rest.numel);
    T* const to = static_cast<T*>(call.out) + (target * call.unit + at[0]);
    if (call.src)
      *to = static_cast<const T*>(call.src)[Offsets<1>(grid.positions, p)[0] + at[1]];
    else
      put_number(number, to);
  }
}

void launch_write(const PutCall& call, StreamHandle stream) {
  if (call.winner) {
    launch(clear_kernel, threads_for(call.targets), stream, call.winner, call.targets);
    launch(claim_kernel, threads_for(call.positions.numel), stream, call);
  }
  const PutGrid grid = put_grid(call);
  by_width(call.width, [&](auto number) {
    if constexpr (sizeof(number) <= 8) {
      std::memcpy(&number, &call.number, sizeof(number));
      launch(write_kernel<decltype(number)>, threads_for(grid.numel), stream, call, grid, number);
    }
  });
}

template <class C>
__global__ void __launch_bounds__(kThreads) reduce_kernel(const PutCall call, const PutGrid grid) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < grid.numel; i += step) {
    const int64_t first = grid.part(i), position = call.order ? call.order[first] : first,
                  target = call.target[position];
    if (target < 0 || (call.order && first > 0 && call.target[call.order[first - 1]] == target)) continue;
    const Offsets<2> at(grid.rest, i - first * grid.rest.numel);
    const int64_t place = target * call.unit + at[0];
    const C before = load<C>(call.out, call.element, place);
    C total = call.include_self ? before : ops::beginning<C>(call.how);
    int64_t p = first, next = position;
    do {
      const int64_t part = Offsets<1>(grid.positions, next)[0] + at[1];
      total = ops::with_element(total, load<C>(call.src, call.element, part), call.how);
      if (++p >= call.positions.numel || !call.order) break;
      next = call.order[p];
    } while (call.target[next] == target);
    if (call.how == ops::ScatterReduction::mean) total = ops::mean_of(total, p - first + call.include_self);
    store<C>(call.out, call.element, place, total);
    if (call.apart)  // the stored value is the rounded result
      store<C>(call.out, call.element, place, before + load<C>(call.out, call.element, place));
  }
}

template <class C>
void launch_reduce(const PutCall& call, StreamHandle stream) {
  const PutGrid grid = put_grid(call);
  launch(reduce_kernel<C>, threads_for(grid.numel), stream, call, grid);
}

template <class C>
__global__ void __launch_bounds__(kThreads) is_in_kernel(const IsInCall call, const StridedGrid<1> grid) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < grid.numel; i += step) {
    const C value = load<C>(call.x, call.element, Offsets<1>(grid, i)[0]);
    const auto at = [&call](int64_t k) { return load<C>(call.sorted, call.element, k * call.step); };
    call.out[i] = ops::is_among(at, call.count, value) != call.invert;
  }
}

template <class C>
void launch_is_in(const IsInCall& call, StreamHandle stream) {
  launch(is_in_kernel<C>, threads_for(call.dims.numel), stream, call, grid_of(call.dims));
}

}  // namespace

void add_index_launchers(Launchers& all) {
  static constexpr IndexLaunchers own{
      launch_gather,          launch_target,        launch_flat,
      launch_write,           launch_reduce<float>, launch_reduce<double>,
      launch_reduce<int64_t>, launch_is_in<float>,  launch_is_in<double>,
      launch_is_in<int64_t>,
  };
  all.index = &own;
}

}  // namespace retrograd::cuda::RG_TARGET
