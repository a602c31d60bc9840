// See engine/allocator.h. Layout: thread-local free lists (Pool), the central cache of large blocks (LargeCache), the counters.
#include "engine/allocator.h"

#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <utility>
#include <vector>

#include "engine/error.h"

namespace retrograd {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kCaching = false;
#else
constexpr bool kCaching = true;
#endif

constexpr size_t kGranule = 64;
constexpr size_t kPoolLimit = 4096;
constexpr size_t kPoolClasses = kPoolLimit / kGranule + 1;
constexpr uint32_t kPoolDepth = 4096;              // blocks kept per class and thread
constexpr int64_t kCacheLimit = int64_t{1} << 30;  // bytes kept in the central cache

constinit std::atomic<int64_t> live_bytes{0}, peak_bytes{0}, limit_bytes{0};
constinit std::atomic<int64_t> fail_countdown{0};

void* system_allocate(size_t bytes) {
  void* p = std::aligned_alloc(kGranule, (bytes + kGranule - 1) / kGranule * kGranule);
  if (!p) throw OutOfMemory(static_cast<int64_t>(bytes), live_bytes, limit_bytes);
  return p;
}

struct FreeBlock {
  FreeBlock* next;
};

// A counter that only its thread writes and any thread reads: no locked instruction.
class OwnCounter {
 public:
  void add(int64_t n) { value_.store(get() + n, std::memory_order_relaxed); }
  int64_t get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> value_{0};
};

struct Pool;

// All threads' pools, and what the pools of threads that ended had counted. Never destroyed, as LargeCache.
struct PoolList {
  std::mutex mutex;
  std::vector<const Pool*> pools;
  std::atomic<int64_t> allocations{0}, tensors{0};

  static PoolList& instance() {
    static PoolList* list = new PoolList;
    return *list;
  }
};

// The lists and counts of one thread. `closed` is set when the thread ends: blocks freed after that (by objects with static lifetime)
// bypass it.
struct Pool {
  std::array<FreeBlock*, kPoolClasses> head{};
  std::array<uint32_t, kPoolClasses> count{};
  OwnCounter allocations, tensors;
  bool closed = false;

  Pool() {
    PoolList& list = PoolList::instance();
    std::lock_guard lock(list.mutex);
    list.pools.push_back(this);
  }
  ~Pool() {
    closed = true;
    for (FreeBlock*& list : head)
      while (list) std::free(std::exchange(list, list->next));
    PoolList& list = PoolList::instance();
    std::lock_guard lock(list.mutex);
    std::erase(list.pools, this);
    list.allocations += allocations.get();
    list.tensors += tensors.get();
  }
};

Pool& pool() {
  static thread_local Pool instance;
  return instance;
}

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
  Pool& p = pool();
  if (p.closed)
    ++PoolList::instance().allocations;
  else
    p.allocations.add(1);
  if (fail_countdown.load(std::memory_order_relaxed) > 0 && fail_countdown.fetch_sub(1) == 1)
    throw OutOfMemory(bytes, live_bytes, limit_bytes);
  const int64_t live = live_bytes.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  const int64_t limit = limit_bytes.load(std::memory_order_relaxed);
  if (limit > 0 && live > limit) {
    live_bytes.fetch_sub(bytes, std::memory_order_relaxed);
    throw OutOfMemory(bytes, live - bytes, limit);
  }
  int64_t peak = peak_bytes.load(std::memory_order_relaxed);
  while (live > peak && !peak_bytes.compare_exchange_weak(peak, live, std::memory_order_relaxed)) {
  }
}

}  // namespace

void* pool_allocate(size_t bytes) {
  if (!kCaching || bytes > kPoolLimit) return system_allocate(bytes);
  Pool& p = pool();
  const size_t cls = (bytes + kGranule - 1) / kGranule;
  if (FreeBlock* block = p.head[cls]) {
    p.head[cls] = block->next;
    --p.count[cls];
    return block;
  }
  return system_allocate(cls * kGranule);
}

void pool_free(void* block, size_t bytes) noexcept {
  if (!kCaching || bytes > kPoolLimit) return std::free(block);
  Pool& p = pool();
  const size_t cls = (bytes + kGranule - 1) / kGranule;
  if (p.closed || p.count[cls] == kPoolDepth) return std::free(block);
  auto* free_block = static_cast<FreeBlock*>(block);
  free_block->next = p.head[cls];
  p.head[cls] = free_block;
  ++p.count[cls];
}

namespace detail {

void* allocate_data(size_t bytes, size_t header) {
  const size_t total = bytes + header;
  count_allocation(static_cast<int64_t>(bytes));
  try {
    if (!kCaching || total <= kPoolLimit) return pool_allocate(total);
    const size_t size = LargeCache::rounded(total);
    if (void* block = LargeCache::instance().take(size)) return block;
    try {
      return system_allocate(size);
    } catch (const OutOfMemory&) {
      LargeCache::instance().clear();
      return system_allocate(size);
    }
  } catch (...) {
    live_bytes.fetch_sub(static_cast<int64_t>(bytes), std::memory_order_relaxed);
    throw;
  }
}

void free_data(void* block, size_t bytes, size_t header) noexcept {
  const size_t total = bytes + header;
  live_bytes.fetch_sub(static_cast<int64_t>(bytes), std::memory_order_relaxed);
  if (!kCaching || total <= kPoolLimit) return pool_free(block, total);
  if (!LargeCache::instance().give(block, LargeCache::rounded(total))) std::free(block);
}

void count_tensor(int delta) {
  Pool& p = pool();
  if (p.closed)
    PoolList::instance().tensors += delta;
  else
    p.tensors.add(delta);
}

}  // namespace detail

namespace memory {

Stats stats() {
  PoolList& list = PoolList::instance();
  std::lock_guard lock(list.mutex);
  Stats s{live_bytes, peak_bytes, list.allocations, list.tensors};
  for (const Pool* p : list.pools) {
    s.allocations += p->allocations.get();
    s.live_tensors += p->tensors.get();
  }
  return s;
}
int64_t reset_peak(int64_t at_least) { return peak_bytes.exchange(std::max(live_bytes.load(), at_least)); }
void set_limit(int64_t bytes) { limit_bytes = bytes; }
void empty_cache() { LargeCache::instance().clear(); }
void fail_allocation_after(int64_t count) { fail_countdown = count; }

}  // namespace memory
}  // namespace retrograd
