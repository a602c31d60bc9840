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

namespace retrograd {
namespace {

constexpr size_t kLargest = size_t{1} << 62;       // of one block: beyond it rounding would overflow
constexpr int64_t kCacheLimit = int64_t{1} << 30;  // bytes kept in the central cache
// Of one allocation. No machine has more, and sums of such sizes do not overflow.
constexpr int64_t kMostBytes = int64_t{1} << 48;

constinit std::atomic<int64_t> live_bytes{0}, peak_bytes{0}, limit_bytes{0};
constinit std::atomic<int64_t> fail_countdown{0};

// A counter that only its thread writes and any thread reads: no locked instruction.
class OwnCounter {
 public:
  void add(int64_t n) { value_.store(get() + n, std::memory_order_relaxed); }
  int64_t get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> value_{0};
};

struct Counts;

// All threads' counts, and what threads that ended had counted. Never destroyed, as LargeCache.
struct CountsList {
  std::mutex mutex;
  std::vector<const Counts*> all;
  std::atomic<int64_t> allocations{0}, tensors{0};

  static CountsList& instance() {
    static CountsList* list = new CountsList;
    return *list;
  }
};

// `closed` is set when the thread ends: what objects of static lifetime do after that is counted in the list.
struct Counts {
  OwnCounter allocations, tensors;
  bool closed = false;

  Counts() {
    CountsList& list = CountsList::instance();
    std::lock_guard lock(list.mutex);
    list.all.push_back(this);
  }
  ~Counts() {
    closed = true;
    CountsList& list = CountsList::instance();
    std::lock_guard lock(list.mutex);
    std::erase(list.all, this);
    list.allocations += allocations.get();
    list.tensors += tensors.get();
  }
};

Counts& counts() {
  static thread_local Counts instance;
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
  Counts& c = counts();
  if (c.closed)
    ++CountsList::instance().allocations;
  else
    c.allocations.add(1);
  if (fail_countdown.load(std::memory_order_relaxed) > 0 && fail_countdown.fetch_sub(1) == 1)
    throw OutOfMemory(bytes, live_bytes, limit_bytes);
  if (bytes > kMostBytes) throw OutOfMemory(bytes, live_bytes, limit_bytes);
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

namespace detail {

void fail_allocation(size_t bytes) {
  throw OutOfMemory(static_cast<int64_t>(bytes), live_bytes, limit_bytes);
}

void* allocate_block(size_t bytes) {
  if (bytes > kLargest) fail_allocation(bytes);
  if (!kPooling || bytes <= kPoolLargest) return pool_allocate(bytes);
  const size_t size = LargeCache::rounded(bytes);
  if (void* block = LargeCache::instance().take(size)) return block;
  try {
    return pool_allocate(size);
  } catch (const OutOfMemory&) {
    memory::empty_cache();
    return pool_allocate(size);
  }
}

void free_block(void* block, size_t bytes) noexcept {
  if (!kPooling || bytes <= kPoolLargest) return pool_free(block, bytes);
  if (!LargeCache::instance().give(block, LargeCache::rounded(bytes))) std::free(block);
}

void* allocate_data(size_t bytes, size_t header) {
  count_allocation(static_cast<int64_t>(bytes));
  try {
    return allocate_block(header + bytes);
  } catch (...) {
    live_bytes.fetch_sub(static_cast<int64_t>(bytes), std::memory_order_relaxed);
    throw;
  }
}

void free_data(void* block, size_t bytes, size_t header) noexcept {
  live_bytes.fetch_sub(static_cast<int64_t>(bytes), std::memory_order_relaxed);
  free_block(block, header + bytes);
}

void count_tensor(int delta) {
  Counts& c = counts();
  if (c.closed)
    CountsList::instance().tensors += delta;
  else
    c.tensors.add(delta);
}

}  // namespace detail

namespace memory {

Stats stats() {
  CountsList& list = CountsList::instance();
  std::lock_guard lock(list.mutex);
  Stats s{live_bytes, peak_bytes, list.allocations, list.tensors};
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
