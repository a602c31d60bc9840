// The pool: blocks of up to 4 KiB, for cells, tape records and the data of small tensors, in 64-byte classes.
//
//   slab     2 MiB at a multiple of 2 MiB, cut from front to back into blocks of any class, so that objects made
//            together are close in memory. A thread that fills slabs asks the system for all memory of the next slab in
//            one call: page faults one by one take longer.
//   lists    of each thread, per class: one in use and one full in reserve. No lock, no counter shared between threads.
//   heap     the surplus of the threads, in whole lists; and partly cut slabs of threads that have ended.
//
// A block may be freed on another thread than the one that allocated it. Whole slabs are returned to the system when
// the heap holds more than 1 GiB, and in pool_trim(). Under a sanitizer every block comes from malloc and goes to free,
// so that the sanitizer sees each lifetime.
#pragma once

#include <cstddef>
#include <cstdint>

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

inline constexpr size_t kPoolLargest = 4096, kPoolGranule = 64;
inline constexpr size_t kPoolClasses = kPoolLargest / kPoolGranule + 1;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kPooling = false;
#else
inline constexpr bool kPooling = true;
#endif

namespace detail {

// A free block.
struct PoolBlock {
  PoolBlock* next;
  PoolBlock* next_list;  // for the first block of a list in the heap
  uint32_t length;       // the same
};

// The free blocks of a class. All zero initially and after the end of the thread: then `room` sends the first free to
// the slow path, and `first` the first allocation.
struct PoolList {
  PoolBlock* first;
  PoolBlock* full;  // a second list of full length, or null
  uint32_t room;    // for blocks that may still be freed into `first`
};
extern constinit thread_local PoolList pool_lists[kPoolClasses];

constexpr size_t pool_class(size_t bytes) { return (bytes + kPoolGranule - 1) / kPoolGranule; }
void* pool_refill(size_t cls);
void pool_free_into_full(void* block, size_t cls) noexcept;
void* allocate_from_system(size_t bytes);
void free_to_system(void* block) noexcept;

}  // namespace detail

/// 64-byte aligned; more than kPoolLargest bytes come from malloc. Throws OutOfMemory.
inline void* pool_allocate(size_t bytes) {
  if (!kPooling || bytes > kPoolLargest) return detail::allocate_from_system(bytes);
  detail::PoolList& list = detail::pool_lists[detail::pool_class(bytes)];
  detail::PoolBlock* block = list.first;
  if (!block) [[unlikely]]
    return detail::pool_refill(detail::pool_class(bytes));
  list.first = block->next;
  ++list.room;
  return block;
}

inline void pool_free(void* p, size_t bytes) noexcept {
  if (!kPooling || bytes > kPoolLargest) return detail::free_to_system(p);
  detail::PoolList& list = detail::pool_lists[detail::pool_class(bytes)];
  if (!list.room) [[unlikely]]
    return detail::pool_free_into_full(p, detail::pool_class(bytes));
  --list.room;
  auto* block = static_cast<detail::PoolBlock*>(p);
  block->next = list.first;
  list.first = block;
}

/// Returns slabs without a block in use to the system; blocks that this thread and the heap hold count as free. Returns
/// the number of bytes.
size_t pool_trim();
/// Bytes of all slabs held now.
size_t pool_bytes();

}  // namespace retrograd
#pragma GCC visibility pop
