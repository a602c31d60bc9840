// The pool: blocks of up to 4 KiB, for cells, tape records and the data of small tensors, in 64-byte classes.
//
//   slab     2 MiB at a multiple of 2 MiB, cut from front to back into blocks of any class, so that what is made together lies together.
//            Huge pages are asked for: a tape of a million records is else bound by page faults and by misses of the page table.
//   lists    of each thread, per class: one that is used and one full in reserve. No lock, no count shared between threads.
//   heap     what threads have too much of, in whole lists; and slabs that a thread that ended left half cut.
//
// A block may be freed on another thread than took it. Whole slabs go back to the system when the heap holds more than 1 GiB, and in
// pool_trim(). Under a sanitizer every block comes from malloc and goes to free, so that it sees each lifetime.
#pragma once

#include <cstddef>
#include <cstdint>

namespace retrograd {

inline constexpr size_t kPoolLargest = 4096;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kPooling = false;
#else
inline constexpr bool kPooling = true;
#endif

/// 64-byte aligned; more than kPoolLargest bytes come from malloc. Throws OutOfMemory.
void* pool_allocate(size_t bytes);
void pool_free(void* block, size_t bytes) noexcept;

/// Gives slabs without a block in use back to the system; counts as free what this thread and the heap hold. Returns their bytes.
size_t pool_trim();
/// Bytes of slabs held now.
size_t pool_bytes();

}  // namespace retrograd
