// Memory of tensor data on the host: counted, limited, and kept for reuse.
//
// Small blocks come from the pool (engine/pool.h). Larger ones are kept in a bounded central cache, because a training
// step asks for the same sizes again and fresh pages cost more than the arithmetic on them. Tensor data and the
// temporary memory of kernels (cpu/scratch.h) are counted (live and peak bytes, as requested, not as rounded) and
// limited; cells and records are not. Under a sanitizer every block comes straight from malloc and goes straight to
// free, so that the sanitizer sees each lifetime.
#pragma once

#include <atomic>

#include "engine/pool.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

namespace memory {

struct Stats {
  int64_t live_bytes;    // of tensor data, and of the temporary memory of running kernels
  int64_t peak_bytes;    // highest live_bytes since reset_peak
  int64_t allocations;   // number of allocations since the start
  int64_t live_tensors;  // tensor cells held now
};

Stats stats();
/// Sets peak_bytes to live_bytes, or to `at_least` if that is higher. Returns the old value.
int64_t reset_peak(int64_t at_least = 0);
/// Refuses an allocation that would raise live_bytes above `bytes` (OutOfMemory). 0: no limit.
void set_limit(int64_t bytes);
/// Returns unused memory to the system: cached large blocks, and slabs of the pool without a block in use.
void empty_cache();
/// For tests: the counted allocation `count` calls from now fails once. 0 switches this off.
void fail_allocation_after(int64_t count);

}  // namespace memory

namespace detail {
[[noreturn]] void fail_allocation(size_t bytes);   // throws OutOfMemory
void* allocate_data(size_t bytes, size_t header);  // header + bytes, which are counted; throws OutOfMemory
void free_data(void* block, size_t bytes, size_t header) noexcept;

// A counter that only its own thread writes and any thread reads: no locked instruction.
class OwnCounter {
 public:
  void add(int64_t n) { value_.store(get() + n, std::memory_order_relaxed); }
  int64_t get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> value_{0};
};

// The counts of one thread while it is listed: from its first count to its end. Later ones are added to `others`.
struct Counts {
  enum State : uint8_t { fresh, listed, unlisted };
  OwnCounter allocations, tensors;
  State state = fresh;
};
extern constinit thread_local Counts counts;
void count_unlisted(OwnCounter Counts::*counter, int64_t n);

inline void count(OwnCounter Counts::*counter, int64_t n) {
  if (counts.state == Counts::listed) [[likely]]
    (counts.*counter).add(n);
  else
    count_unlisted(counter, n);
}
inline void count_tensor(int delta) { count(&Counts::tensors, delta); }

}  // namespace detail

}  // namespace retrograd
#pragma GCC visibility pop
