// See engine/pool.h. Order: the system, Slab, Heap (locked), the state of a thread, the functions. The first words of a
// free block are its links.
#include "engine/pool.h"

#ifdef __linux__
#include <sys/mman.h>
#endif

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "engine/allocator.h"
#include "engine/lifetime.h"
#include "engine/never_destroyed.h"

namespace retrograd::inline v0 {
namespace {

using Block = detail::PoolBlock;
using List = detail::PoolList;
using detail::pool_class;
using detail::pool_lists;

constexpr size_t kGranule = kPoolGranule, kClasses = kPoolClasses;
constexpr size_t kSlab = size_t{2} << 20;
constexpr size_t kFewSlabs = 4;  // with more, a thread that has filled one is expected to fill the next, too
constexpr size_t kKept = size_t{1} << 30;  // free bytes in the heap that are not returned
constexpr uint32_t kListBytes = 256 << 10;

constexpr uint32_t list_length(size_t cls) {
  return static_cast<uint32_t>(kListBytes / (std::max<size_t>(cls, 1) * kGranule));
}

// The header of a slab; the blocks begin one granule after it.
struct Slab {
  size_t cut = kGranule;   // bytes, known once no thread cuts it any more
  size_t free = kGranule;  // of them, while trimming
  bool is_open = true;

  static Slab* of(void* block) {
    return reinterpret_cast<Slab*>(reinterpret_cast<uintptr_t>(block) & ~(kSlab - 1));
  }
  bool is_unused() const { return !is_open && free == cut; }
};
static_assert(sizeof(Slab) <= kGranule && sizeof(Block) <= kGranule);

// The memory from which a thread cuts its blocks.
struct Range {
  char* next = nullptr;
  char* end = nullptr;
  char* cut(size_t size) { return std::exchange(next, next + size); }
  bool has(size_t size) const { return static_cast<size_t>(end - next) >= size; }
};

// Asks the system to provide all memory of a slab in one call, which costs less than a fault for each page, and as one
// huge page, which needs fewer address translations: a tape that does not fit into the caches is recorded, run and
// dropped in less time. When the host is slow to find a huge page, the next slabs use small pages. A kernel without
// this call ignores it, and small pages are provided one by one.
void populate([[maybe_unused]] void* slab) {
#ifdef __linux__
  using Clock = std::chrono::steady_clock;
  constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE of Linux 5.14, which the system headers may lack
  constexpr auto kSlow = std::chrono::microseconds(800);  // small pages take 400 to 700
  constexpr int kSlabsAfterSlow = 128;
  static constinit std::atomic<int> small_slabs{0};  // number of the next slabs to use small pages
  const bool is_huge = small_slabs.load(std::memory_order_relaxed) <= 0;
  if (is_huge)
    madvise(slab, kSlab, MADV_HUGEPAGE);
  else
    small_slabs.fetch_sub(1, std::memory_order_relaxed);
  const Clock::time_point begin = Clock::now();
  madvise(slab, kSlab, kPopulateWrite);
  if (is_huge && Clock::now() - begin > kSlow) small_slabs.store(kSlabsAfterSlow, std::memory_order_relaxed);
#endif
}

class Heap {
 public:
  static Heap& instance() { return detail::never_destroyed<Heap>(); }

  void give(size_t cls, Block* first, uint32_t length) noexcept {
    std::lock_guard lock(mutex_);
    push(cls, first, length);
    if (free_ <= next_trim_) return;
    trim_locked();
    next_trim_ = std::max(kKept, 2 * free_);
  }
  /// A list, or null. Checks before it locks: every cut of a new block calls this first.
  Block* take(size_t cls) {
    if (!lists_[cls].load(std::memory_order_relaxed)) return nullptr;
    std::lock_guard lock(mutex_);
    Block* first = lists_[cls];
    if (!first) return nullptr;
    lists_[cls] = first->next_list;
    free_ -= first->length * cls * kGranule;
    return first;
  }
  /// A range to cut from, in exchange for one that has no room for `size` bytes.
  Range exchange_range(Range old, size_t size) {
    std::unique_lock lock(mutex_);
    if (old.next) close(old);
    while (!left_.empty()) {
      const Range range = left_.back();
      left_.pop_back();
      if (range.has(size)) return range;
      close(range);
    }
    const bool will_be_filled = old.next && slabs_.size() >= kFewSlabs;
    lock.unlock();
    std::unique_ptr<void, decltype(&std::free)> memory(std::aligned_alloc(kSlab, kSlab), &std::free);
    if (!memory) detail::fail_allocation(kSlab);
    if (will_be_filled) populate(memory.get());  // before the first write, else it cannot become a huge page
    lock.lock();
    slabs_.reserve(slabs_.size() + 1);
    left_.reserve(slabs_.size() + 1);  // so that leave() need not allocate
    char* const slab = static_cast<char*>(memory.release());
    slabs_.push_back(new (slab) Slab);
    return {slab + kGranule, slab + kSlab};
  }
  /// For a thread that has ended and no longer has lists.
  void* allocate_one(size_t cls) {
    if (Block* list = take(cls)) {
      if (list->next) give(cls, list->next, list->length - 1);
      return list;
    }
    Range range = exchange_range({}, cls * kGranule);
    void* block = range.cut(cls * kGranule);
    leave(range);
    return block;
  }
  /// Another thread may continue to cut from it.
  void leave(Range range) noexcept {
    std::lock_guard lock(mutex_);
    if (range.next) left_.push_back(range);
  }
  size_t trim() noexcept {
    std::lock_guard lock(mutex_);
    return trim_locked();
  }
  /// Blocks in use are kept.
  void unload() noexcept {
    std::lock_guard lock(mutex_);
    for (const Range range : left_) close(range);
    std::vector<Range>().swap(left_);
    trim_locked();
    if (slabs_.empty()) std::vector<Slab*>().swap(slabs_);
  }
  size_t bytes() {
    std::lock_guard lock(mutex_);
    return slabs_.size() * kSlab;
  }

 private:
  static void close(Range range) {
    Slab* slab = Slab::of(range.next - 1);
    slab->cut = static_cast<size_t>(range.next - reinterpret_cast<char*>(slab));
    slab->is_open = false;
  }
  void push(size_t cls, Block* first, uint32_t length) noexcept {
    first->next_list = lists_[cls];
    first->length = length;
    lists_[cls] = first;
    free_ += length * cls * kGranule;
  }
  template <class F>
  static void for_each_block(Block* list, F&& f) {
    while (list) {
      Block* const next_list = list->next_list;
      for (Block* b = list; b;) f(std::exchange(b, b->next));
      list = next_list;
    }
  }
  void keep_used(size_t cls, Block* list) noexcept {
    Block* kept = nullptr;
    uint32_t length = 0;
    for_each_block(list, [&](Block* b) {
      if (Slab::of(b)->is_unused()) return;
      b->next = std::exchange(kept, b);
      if (++length == list_length(cls)) push(cls, std::exchange(kept, nullptr), std::exchange(length, 0));
    });
    if (kept) push(cls, kept, length);
  }
  size_t trim_locked() noexcept {
    for (size_t cls = 0; cls < kClasses; ++cls)
      for_each_block(lists_[cls], [&](Block* b) { Slab::of(b)->free += cls * kGranule; });
    free_ = 0;
    for (size_t cls = 0; cls < kClasses; ++cls) keep_used(cls, lists_[cls].exchange(nullptr));
    const size_t before = slabs_.size();
    std::erase_if(slabs_, [](Slab* slab) {
      const bool goes = slab->is_unused();
      slab->free = kGranule;
      if (goes) std::free(slab);
      return goes;
    });
    return (before - slabs_.size()) * kSlab;
  }

  std::mutex mutex_;
  std::array<std::atomic<Block*>, kClasses> lists_{};  // changed under the lock
  std::vector<Slab*> slabs_;
  std::vector<Range> left_;
  size_t free_ = 0, next_trim_ = kKept;
};

void end_of_thread() noexcept;

// The other state of a thread. All zero initially.
struct OfThread {
  Range range;
  bool is_ready, is_closed;
};
constinit thread_local OfThread of_thread{};
constinit thread_local detail::AtEnd leave_at_end{&end_of_thread};

/// Returns all blocks to the heap.
void give_back() noexcept {
  for (size_t cls = 0; cls < kClasses; ++cls) {
    List& list = pool_lists[cls];
    if (list.first) Heap::instance().give(cls, list.first, list_length(cls) - list.room);
    if (list.full) Heap::instance().give(cls, list.full, list_length(cls));
    list = {nullptr, nullptr, list_length(cls)};
  }
}

void end_of_thread() noexcept {
  give_back();
  Heap::instance().leave(of_thread.range);
  of_thread = {{}, false, true};
  std::ranges::fill(pool_lists, List{});
}

void get_ready() noexcept {
  detail::at_thread_end(leave_at_end);
  for (size_t cls = 0; cls < kClasses; ++cls) pool_lists[cls].room = list_length(cls);
  of_thread.is_ready = true;
}

}  // namespace

constinit thread_local List detail::pool_lists[kClasses]{};

void* detail::pool_refill(size_t cls) {
  if (of_thread.is_closed) return Heap::instance().allocate_one(cls);
  if (!of_thread.is_ready) get_ready();
  const size_t size = cls * kGranule;
  List& list = pool_lists[cls];
  if (list.full) {
    list.first = std::exchange(list.full, nullptr);
    list.room = 0;
    return pool_allocate(size);
  }
  if (Block* taken = Heap::instance().take(cls)) {
    list.first = taken;
    list.room = list_length(cls) - taken->length;
    return pool_allocate(size);
  }
  Range& range = of_thread.range;
  if (!range.has(size)) range = Heap::instance().exchange_range(std::exchange(range, {}), size);
  return range.cut(size);
}

void detail::pool_free_into_full(void* p, size_t cls) noexcept {
  if (of_thread.is_closed) {
    static_cast<Block*>(p)->next = nullptr;
    return Heap::instance().give(cls, static_cast<Block*>(p), 1);
  }
  if (!of_thread.is_ready) get_ready();
  List& list = pool_lists[cls];
  if (list.first) {
    if (list.full) Heap::instance().give(cls, list.full, list_length(cls));
    list.full = std::exchange(list.first, nullptr);
    list.room = list_length(cls);
  }
  pool_free(p, cls * kGranule);
}

void* detail::allocate_from_system(size_t bytes) {
  void* p = std::aligned_alloc(kGranule, pool_class(bytes) * kGranule);
  if (!p) fail_allocation(bytes);
  return p;
}

void detail::free_to_system(void* block) noexcept { std::free(block); }

size_t pool_trim() {
  if (of_thread.is_ready) give_back();
  return Heap::instance().trim();
}

size_t pool_bytes() { return Heap::instance().bytes(); }

}  // namespace retrograd
