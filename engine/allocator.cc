// See engine/allocator.h. Layout: the counters, the cache of large blocks (LargeCache), tensor data.
#include "engine/allocator.h"

#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <utility>
#include <vector>

#include "engine/error.h"
#include "engine/ref.h"

namespace retrograd {
namespace {

constexpr size_t kLargest = size_t{1} << 62;       // of one block: beyond it rounding would overflow
constexpr int64_t kCacheLimit = int64_t{1} << 30;  // bytes kept in the central cache
// Of one allocation. No machine has more, and sums of such sizes do not overflow.
constexpr int64_t kMostBytes = int64_t{1} << 48;

constinit std::atomic<int64_t> live_bytes{0}, peak_bytes{0}, limit_bytes{0};
constinit std::atomic<int64_t> fail_countdown{0};

using detail::Counts;

// All threads' counts, and what was counted on threads that were not listed. Never destroyed, as LargeCache.
struct CountsList {
  std::mutex mutex;
  std::vector<const Counts*> all;
  Counts others;  // changed under the lock

  static CountsList& instance() {
    static CountsList* list = new CountsList;
    return *list;
  }
};

// Lists its thread's counts. What objects of static lifetime do when it is gone is counted among the others.
struct Listed {
  Listed() {
    CountsList& list = CountsList::instance();
    std::lock_guard lock(list.mutex);
    list.all.push_back(&detail::counts);
    detail::counts.is_listed = true;
  }
  ~Listed() {
    CountsList& list = CountsList::instance();
    std::lock_guard lock(list.mutex);
    std::erase(list.all, &detail::counts);
    list.others.allocations.add(detail::counts.allocations.get());
    list.others.tensors.add(detail::counts.tensors.get());
    detail::counts.is_listed = false;
  }
};

// Large blocks by rounded size: classes at eighths of powers of two, so that at most 1/8 is wasted. Never destroyed: tensors of static
// lifetime may be freed after it would have been.
struct LargeCache {
  static constexpr size_t kClasses = 64 * 8;
  std::mutex mutex;
  std::array<std::vector<void*>, kClasses> blocks;
  int64_t cached = 0;

  static LargeCache& instance() {
    static LargeCache* cache = new LargeCache;
    return *cache;
  }
  static size_t step(size_t bytes) { return std::bit_floor(bytes) / 8; }
  static size_t rounded(size_t bytes) { return (bytes + step(bytes) - 1) / step(bytes) * step(bytes); }
  static size_t index(size_t size) {
    return static_cast<size_t>(std::bit_width(size)) * 8 + (size / step(size)) % 8;
  }

  void* take(size_t size) {
    std::lock_guard lock(mutex);
    std::vector<void*>& list = blocks[index(size)];
    if (list.empty()) return nullptr;
    void* block = list.back();
    list.pop_back();
    cached -= static_cast<int64_t>(size);
    return block;
  }
  bool give(void* block, size_t size) noexcept {
    std::lock_guard lock(mutex);
    if (cached + static_cast<int64_t>(size) > kCacheLimit) return false;
    try {
      blocks[index(size)].push_back(block);
    } catch (const std::bad_alloc&) {
      return false;
    }
    cached += static_cast<int64_t>(size);
    return true;
  }
  void clear() {
    std::lock_guard lock(mutex);
    for (std::vector<void*>& list : blocks) {
      for (void* block : list) std::free(block);
      list.clear();
    }
    cached = 0;
  }
};

void count_allocation(int64_t bytes) {
  detail::count(&Counts::allocations, 1);
  if (fail_countdown.load(std::memory_order_relaxed) > 0 && fail_countdown.fetch_sub(1) == 1)
    throw OutOfMemory(bytes, live_bytes, limit_bytes);
  if (bytes > kMostBytes) throw OutOfMemory(bytes, live_bytes, limit_bytes);
  const int64_t live = add_relaxed(live_bytes, bytes);
  const int64_t limit = limit_bytes.load(std::memory_order_relaxed);
  if (limit > 0 && live > limit) {
    add_relaxed(live_bytes, -bytes);
    throw OutOfMemory(bytes, live - bytes, limit);
  }
  int64_t peak = peak_bytes.load(std::memory_order_relaxed);
  while (live > peak && !peak_bytes.compare_exchange_weak(peak, live, std::memory_order_relaxed)) {
  }
}

void* allocate_large(size_t bytes) {
  if (bytes > kLargest) detail::fail_allocation(bytes);
  if (!kPooling) return pool_allocate(bytes);
  const size_t size = LargeCache::rounded(bytes);
  if (void* block = LargeCache::instance().take(size)) return block;
  try {
    return pool_allocate(size);
  } catch (const OutOfMemory&) {
    memory::empty_cache();
    return pool_allocate(size);
  }
}

void free_large(void* block, size_t bytes) noexcept {
  if (!kPooling) return pool_free(block, bytes);
  if (!LargeCache::instance().give(block, LargeCache::rounded(bytes))) std::free(block);
}

}  // namespace

namespace detail {

void fail_allocation(size_t bytes) {
  throw OutOfMemory(static_cast<int64_t>(bytes), live_bytes, limit_bytes);
}

void* allocate_data(size_t bytes, size_t header) {
  count_allocation(static_cast<int64_t>(bytes));
  const size_t all = header + bytes;
  try {
    return all <= kPoolLargest ? pool_allocate(all) : allocate_large(all);
  } catch (...) {
    add_relaxed(live_bytes, -static_cast<int64_t>(bytes));
    throw;
  }
}

void free_data(void* block, size_t bytes, size_t header) noexcept {
  add_relaxed(live_bytes, -static_cast<int64_t>(bytes));
  const size_t all = header + bytes;
  all <= kPoolLargest ? pool_free(block, all) : free_large(block, all);
}

constinit thread_local Counts counts [[gnu::tls_model("initial-exec")]];

void count_unlisted(OwnCounter Counts::*counter, int64_t n) {
  static thread_local Listed listed;
  if (counts.is_listed) return (counts.*counter).add(n);
  CountsList& list = CountsList::instance();
  std::lock_guard lock(list.mutex);
  (list.others.*counter).add(n);
}

}  // namespace detail

namespace memory {

Stats stats() {
  CountsList& list = CountsList::instance();
  std::lock_guard lock(list.mutex);
  Stats s{live_bytes, peak_bytes, list.others.allocations.get(), list.others.tensors.get()};
  for (const Counts* c : list.all) {
    s.allocations += c->allocations.get();
    s.live_tensors += c->tensors.get();
  }
  return s;
}
int64_t reset_peak(int64_t at_least) { return peak_bytes.exchange(std::max(live_bytes.load(), at_least)); }
void set_limit(int64_t bytes) { limit_bytes = bytes; }
void empty_cache() {
  LargeCache::instance().clear();
  pool_trim();
}
void fail_allocation_after(int64_t count) { fail_countdown = count; }

}  // namespace memory
}  // namespace retrograd
