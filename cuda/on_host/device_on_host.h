// CUDA's language for the host's compiler: after this header is included, a kernel's source is C++, and runs as
// cuda/on_host/scheduler.h describes. No header of the toolkit is needed.
//
// `__shared__` is `static`: AddressSanitizer adds red zones around it; it keeps the last block's values. Dynamic shared
// memory comes from RG_DYNAMIC_SHARED. `<<<>>>` is not C++: see launch() in cuda/kernels/launch.h.
//
// Limits: no inline PTX (guard it with __CUDA_ARCH__, with the formula next to it: cuda/kernels/tensor_core.cuh),
// textures, lockstep without *_sync; CUB has stand-ins (library_sort.h, library_scan.h).
#pragma once

#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>

#include "cuda/on_host/scheduler.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __shared__ static
#define __launch_bounds__(...)
#define RG_DYNAMIC_SHARED(T, name) T* const name = reinterpret_cast<T*>(on_host::place().shared)
#define threadIdx (on_host::thread().id)
#define blockIdx (on_host::place().id)
#define blockDim (on_host::place().dim)
#define gridDim (on_host::place().grid)

inline void __syncthreads() { on_host::wait_block(); }
inline void __syncwarp(unsigned mask = ~0u) { on_host::wait_warp(mask); }

template <class T>
T __shfl_sync(unsigned mask, T v, int from, int width = 32) {
  const int lane = static_cast<int>(on_host::thread().lane);
  return on_host::exchange(mask, v, static_cast<unsigned>((lane & ~(width - 1)) + (from & (width - 1))));
}
template <class T>
T __shfl_down_sync(unsigned mask, T v, unsigned delta, int width = 32) {
  const unsigned lane = on_host::thread().lane, w = static_cast<unsigned>(width);
  return on_host::exchange(mask, v, (lane & (w - 1)) + delta < w ? lane + delta : lane);
}
template <class T>
T __shfl_up_sync(unsigned mask, T v, unsigned delta, int width = 32) {
  const unsigned lane = on_host::thread().lane, w = static_cast<unsigned>(width);
  return on_host::exchange(mask, v, (lane & (w - 1)) >= delta ? lane - delta : lane);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T v, int other, int = 32) {
  return on_host::exchange(mask, v, on_host::thread().lane ^ static_cast<unsigned>(other));
}
inline unsigned __ballot_sync(unsigned mask, bool vote) {
  unsigned votes = 0;
  for (unsigned i = 0; i < on_host::kWarp; i++)
    if (mask & on_host::live_lanes() & (1u << i)) votes |= on_host::exchange(mask, unsigned{vote}, i) << i;
  return votes;
}

template <class T>
T atomicAdd(T* at, T v) {
  return std::atomic_ref<T>(*at).fetch_add(v, std::memory_order_relaxed);
}
template <class T>
T atomicCAS(T* at, T expected, T v) {
  std::atomic_ref<T>(*at).compare_exchange_strong(expected, v, std::memory_order_relaxed);
  return expected;
}
template <class T>
T atomicMax(T* at, T v) {
  std::atomic_ref<T> place(*at);
  T old = place.load(std::memory_order_relaxed);
  while (old < v && !place.compare_exchange_weak(old, v, std::memory_order_relaxed)) {
  }
  return old;
}

inline void __threadfence() {}
template <class T>
T __ldg(const T* at) {
  return *at;
}
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline unsigned __float_as_uint(float f) { return std::bit_cast<unsigned>(f); }
inline float __uint_as_float(unsigned u) { return std::bit_cast<float>(u); }
