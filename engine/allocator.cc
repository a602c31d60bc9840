// See engine/allocator.h. Layout: the counters, the cache of large blocks (LargeCache), tensor data.
#include "engine/allocator.h"

#ifdef __linux__
#include <sys/mman.h>
#endif

#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/error.h"
#include "engine/lifetime.h"
#include "engine/never_destroyed.h"
#include "engine/ref.h"

namespace retrograd::inline v0 {
namespace {

constexpr size_t kLargest = size_t{1} << 62;       // largest size of one block: a larger one would overflow
constexpr int64_t kCacheLimit = int64_t{1} << 30;  // bytes kept in the central cache
// Blocks of this size contain at least three huge pages. A block is put on huge pages when it has been reused this
// often.
constexpr size_t kHugeBytes = size_t{8} << 20;
constexpr int kOften = 3;
// Largest size of one allocation. No machine has more, and sums of such sizes do not overflow.
constexpr int64_t kMostBytes = int64_t{1} << 48;

constinit std::atomic<int64_t> live_bytes{0}, peak_bytes{0}, limit_bytes{0};
constinit std::atomic<int64_t> fail_countdown{0};

using detail::Counts;

// The counts of a thread, and its neighbours in the list of all.
struct CountsEntry {
  Counts* counts = nullptr;
  CountsEntry *next = nullptr, *previous = nullptr;
};
constinit thread_local CountsEntry entry_of_thread;

// The counts of all threads, and what was counted on threads that are not listed. The list needs no memory of its own,
// which would be lost when this library is unloaded while a thread is listed.
struct CountsList {
  std::mutex mutex;
  CountsEntry* first = nullptr;
  Counts others;  // changed under the lock

  static CountsList& instance() { return detail::never_destroyed<CountsList>(); }
  // This thread does.
  void enter() noexcept {
    std::lock_guard lock(mutex);
    CountsEntry& entry = entry_of_thread;
    entry = {&detail::counts, first, nullptr};
    if (first) first->previous = &entry;
    first = &entry;
    entry.counts->state = Counts::listed;
  }
  void leave() noexcept {
    std::lock_guard lock(mutex);
    const CountsEntry& entry = entry_of_thread;
    (entry.previous ? entry.previous->next : first) = entry.next;
    if (entry.next) entry.next->previous = entry.previous;
    others.allocations.add(entry.counts->allocations.get());
    others.tensors.add(entry.counts->tensors.get());
    entry.counts->state = Counts::unlisted;
  }
};

constinit thread_local detail::AtEnd counts_at_end{[]() noexcept { CountsList::instance().leave(); }};

// Asks the system to move a block to huge pages, which need fewer address translations: a step whose values do not fit
// into the caches gains 1 or 2 percent. The system copies the block into new memory, which takes at least a millisecond
// for 3 MiB. So this is done only to blocks that are reused many times, such as the arena of a compiled step, and not
// in the first step. Linux before 6.1 ignores the request.
void put_on_huge_pages([[maybe_unused]] void* block, [[maybe_unused]] size_t size) {
#ifdef __linux__
  constexpr int kCollapse = 25;  // MADV_COLLAPSE, which the system headers may lack
  constexpr uintptr_t kPage = uintptr_t{2} << 20;
  const auto address = reinterpret_cast<uintptr_t>(block), begin = (address + kPage - 1) / kPage * kPage;
  madvise(reinterpret_cast<void*>(begin), (address + size - begin) / kPage * kPage, kCollapse);
#endif
}

// Large blocks by rounded size. The classes are eighths of powers of two, so that at most 1/8 is wasted.
struct LargeCache {
  static constexpr size_t kClasses = 64 * 8;
  std::mutex mutex;
  std::array<std::vector<void*>, kClasses> blocks;
  std::unordered_map<void*, int> reuses;  // of blocks of kHugeBytes and more
  int64_t cached = 0;

  static LargeCache& instance() { return detail::never_destroyed<LargeCache>(); }
  static size_t step(size_t bytes) { return std::bit_floor(bytes) / 8; }
  static size_t rounded(size_t bytes) { return (bytes + step(bytes) - 1) / step(bytes) * step(bytes); }
  static size_t index(size_t size) {
    return static_cast<size_t>(std::bit_width(size)) * 8 + (size / step(size)) % 8;
  }

  struct Taken {
    void* block = nullptr;  // null: none was available
    int reuses = 0;
  };
  Taken take(size_t size) {
    std::lock_guard lock(mutex);
    std::vector<void*>& list = blocks[index(size)];
    if (list.empty()) return {};
    void* block = list.back();
    list.pop_back();
    cached -= static_cast<int64_t>(size);
    return {block, size < kHugeBytes ? 0 : count_reuse(block)};
  }
  int count_reuse(void* block) noexcept {
    try {
      return ++reuses[block];
    } catch (const std::bad_alloc&) {
      return 0;
    }
  }
  // Keeps a block, or gives it back to the system.
  void give(void* block, size_t size) noexcept {
    std::lock_guard lock(mutex);
    if (cached + static_cast<int64_t>(size) > kCacheLimit) return drop(block);
    try {
      blocks[index(size)].push_back(block);
    } catch (const std::bad_alloc&) {
      return drop(block);
    }
    cached += static_cast<int64_t>(size);
  }
  void drop(void* block) noexcept {
    reuses.erase(block);
    std::free(block);
  }
  void clear() noexcept {
    std::lock_guard lock(mutex);
    for (std::vector<void*>& list : blocks) {
      for (void* block : list) drop(block);
      std::vector<void*>().swap(list);
    }
    cached = 0;
  }
  void unload() noexcept { clear(); }
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
  if (const auto [block, reuses] = LargeCache::instance().take(size); block) {
    if (reuses == kOften) put_on_huge_pages(block, size);
    return block;
  }
  try {
    return pool_allocate(size);
  } catch (const OutOfMemory&) {
    memory::empty_cache();
    return pool_allocate(size);
  }
}

void free_large(void* block, size_t bytes) noexcept {
  if (!kPooling) return pool_free(block, bytes);
  LargeCache::instance().give(block, LargeCache::rounded(bytes));
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

constinit thread_local Counts counts;

void count_unlisted(OwnCounter Counts::*counter, int64_t n) {
  CountsList& list = CountsList::instance();
  if (counts.state == Counts::fresh) {
    list.enter();
    if (detail::at_thread_end(counts_at_end)) return (counts.*counter).add(n);
    list.leave();
  }
  std::lock_guard lock(list.mutex);
  (list.others.*counter).add(n);
}

}  // namespace detail

namespace memory {

Stats stats() {
  CountsList& list = CountsList::instance();
  std::lock_guard lock(list.mutex);
  Stats s{live_bytes, peak_bytes, list.others.allocations.get(), list.others.tensors.get()};
  for (const CountsEntry* entry = list.first; entry; entry = entry->next) {
    s.allocations += entry->counts->allocations.get();
    s.live_tensors += entry->counts->tensors.get();
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
