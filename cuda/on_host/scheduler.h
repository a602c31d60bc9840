// The execution model of a kernel, on the host: blocks, threads, barriers, shuffles. For tests, without a device.
//
// One block runs at a time, on the calling thread; its threads are fibers. A fiber runs threads to their end, one after
// the other; only when one waits (__syncthreads, __syncwarp, a shuffle) does another fiber start. A kernel that never
// waits never switches. Launch::seed shuffles blocks and threads, so that a kernel whose result depends on their order
// is detected. A barrier that some live thread of the group never reaches is an exception, not a hang.
//
// Under ThreadSanitizer each thread has its own fiber, and only barriers, shuffles and launches order threads: a
// missing __syncthreads() is reported as a data race. Under AddressSanitizer fibers are annotated, so that its checks
// work inside kernels.
//
// Limits: blocks that wait for each other, and races between blocks and streams, are not modelled. x86-64 only.
#pragma once

#include <cstddef>
#include <cstring>
#include <functional>
#include <stdexcept>

#include "cuda/on_host/async_copies.h"

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

namespace on_host {

inline constexpr unsigned kWarp = 32;

/// The current thread.
struct Thread {
  uint3 id;
  unsigned lane;
};
/// The current block.
struct Place {
  uint3 id;
  dim3 dim, grid;
  char* shared;  // dynamic shared memory, filled with NaN at the start of a block
};
const Thread& thread();
const Place& place();

struct Launch {
  dim3 grid, block;
  size_t shared = 0;  // bytes
  unsigned seed = 0;
  const void* stream = nullptr;
};
/// Calls kernel() once for each thread of the grid; rethrows what a thread throws. One launch at a time.
void launch(const Launch& at, std::function<void()> kernel);

/// From now on, what this thread launches on `stream` is not run but passed to `keep`, as a function that runs it. An
/// empty function ends this.
void keep_launches(const void* stream, std::function<void(std::function<void()>)> keep);

/// For launches of this process without a seed of their own.
void set_seed(unsigned seed);

/// Called before and after the kernel of each launch, for example to make device memory accessible.
struct Gate {
  virtual void open() = 0;
  virtual void close() = 0;

 protected:
  ~Gate() = default;
};
/// For the launches of this process. It must outlive them.
void set_gate(Gate& gate);

/// The copies of the current thread.
AsyncCopies& copies();

void wait_block();
/// `mask`: the lanes that take part, including this one.
void wait_warp(unsigned mask);

/// The lanes of this warp that have not ended, and the values that they exchange: at most kShown bytes.
inline constexpr size_t kShown = 32;
unsigned live_lanes();
void show(const void* value, size_t bytes);
void look(void* value, size_t bytes, unsigned lane);

template <class T>
T exchange(unsigned mask, T v, unsigned from) {
  static_assert(sizeof(T) <= kShown);
  show(&v, sizeof(T));
  wait_warp(mask);
  if (from >= kWarp || !((mask & live_lanes()) >> from & 1))
    throw std::logic_error("a shuffle reads a lane that takes no part");
  look(&v, sizeof(T), from);
  wait_warp(mask);
  return v;
}

/// The values that each lane of a whole warp exchanges.
template <class T>
struct Lanes {
  T of[kWarp];
};
template <class T>
Lanes<T> gather(const T& v) {
  static_assert(sizeof(T) <= kShown);
  show(&v, sizeof(T));
  wait_warp(~0u);
  if (live_lanes() != ~0u) throw std::logic_error("an instruction of a whole warp lacks lanes");
  Lanes<T> all;
  for (unsigned i = 0; i < kWarp; ++i) look(&all.of[i], sizeof(T), i);
  wait_warp(~0u);
  return all;
}

}  // namespace on_host
