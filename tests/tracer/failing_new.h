// operator new that fails at a given call on this thread. A program that includes this replaces all four operators
// globally: only one source file may include it.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <new>

namespace retrograd::testing {
inline thread_local int64_t news_left = 0;  // the call that brings it to 0 fails; 0: none does
}  // namespace retrograd::testing

// Not inlined: the compiler would see malloc paired with delete.
[[gnu::noinline]] void* operator new(size_t size) {
  int64_t& left = retrograd::testing::news_left;
  if (left > 0 && --left == 0) throw std::bad_alloc();
  void* block = std::malloc(size ? size : 1);
  if (!block) throw std::bad_alloc();
  return block;
}
[[gnu::noinline]] void* operator new(size_t size, const std::nothrow_t&) noexcept {
  int64_t& left = retrograd::testing::news_left;
  if (left > 0 && --left == 0) return nullptr;
  return std::malloc(size ? size : 1);
}
[[gnu::noinline]] void operator delete(void* block) noexcept { std::free(block); }
[[gnu::noinline]] void operator delete(void* block, size_t) noexcept { std::free(block); }
