// Prefetches memory before it is needed, where a processor cannot predict the next address, or does not predict far
// enough.
//
// A prefetch is a hint and never faults. Outside of mapped memory it still costs a page table walk, so callers stay
// within their own memory. Everything is inlined by force: GCC treats a function that does nothing but prefetch as one
// without effects and drops the calls of it.
#pragma once

#include <cstdint>

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

inline constexpr int64_t kCacheLine = 64;  // bytes

enum class CacheLevel : uint8_t { first, second };

/// Prefetches `bytes` bytes from `from` on, line by line.
template <CacheLevel level>
[[gnu::always_inline]] inline void prefetch(const void* from, int64_t bytes) {
  for (int64_t at = 0; at < bytes; at += kCacheLine)
    __builtin_prefetch(static_cast<const char*>(from) + at, 0, level == CacheLevel::first ? 3 : 2);
}
/// The same for memory that will be written: no other core keeps the line.
[[gnu::always_inline]] inline void prefetch_to_write(const void* from, int64_t bytes) {
  for (int64_t at = 0; at < bytes; at += kCacheLine)
    __builtin_prefetch(static_cast<const char*>(from) + at, 1);
}

}  // namespace retrograd
#pragma GCC visibility pop
