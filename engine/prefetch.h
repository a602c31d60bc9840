// Fetching memory before it is needed: where a processor cannot guess what comes next, or does not guess far enough.
//
// A fetch is a hint, which gives no fault. Beyond memory that is mapped it still costs a walk of the page tables,
// so callers end with what is theirs. All is inlined by force: GCC takes a function that does nothing but fetch for
// one without effects and drops the calls of it.
#pragma once

#include <cstdint>

namespace retrograd {

inline constexpr int64_t kCacheLine = 64;  // bytes

enum class CacheLevel : uint8_t { first, second };

/// Fetches `bytes` bytes from `from` on, line by line.
template <CacheLevel level>
[[gnu::always_inline]] inline void prefetch(const void* from, int64_t bytes) {
  for (int64_t at = 0; at < bytes; at += kCacheLine)
    __builtin_prefetch(static_cast<const char*>(from) + at, 0, level == CacheLevel::first ? 3 : 2);
}
/// The same for what will be written: no other core keeps it.
[[gnu::always_inline]] inline void prefetch_to_write(const void* from, int64_t bytes) {
  for (int64_t at = 0; at < bytes; at += kCacheLine)
    __builtin_prefetch(static_cast<const char*>(from) + at, 1);
}

}  // namespace retrograd
