// The stack of temporary memory: see cpu/scratch.h.
//
// Each thread has one ScratchStack. Pieces are freed in reverse order, so the bytes before a piece are the same when
// it is allocated and when it is freed: they tell whether it is in the area. Pieces that do not fit are counted on
// the stack like the others, so the stack reaches its measured height wherever they are. Sizes beyond kMostBytes are
// refused before they are added, so no sum overflows.
#include "cpu/scratch.h"

#include <algorithm>

#include "engine/allocator.h"

namespace retrograd::inline v0::cpu::detail {

namespace {

constexpr int64_t kAlignment = 64;
constexpr int64_t kMostBytes = int64_t{1} << 48;  // of a call: sums of such sizes do not overflow

}  // namespace

constinit thread_local ScratchStack scratch_stack;

int64_t scratch_size(int64_t count, size_t item) {
  int64_t bytes;
  if (__builtin_mul_overflow(count, static_cast<int64_t>(item), &bytes) || bytes > kMostBytes)
    retrograd::detail::fail_allocation(~size_t{0} >> 1);
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

void* take_scratch(int64_t bytes) {
  ScratchStack& stack = scratch_stack;
  const int64_t begin = stack.top, end = begin + bytes;
  if (bytes > kMostBytes - begin) retrograd::detail::fail_allocation(static_cast<size_t>(bytes));
  void* piece = kNowhere;
  if (end <= stack.size)
    piece = stack.area + begin;
  else if (!measuring())
    piece = retrograd::detail::allocate_data(static_cast<size_t>(bytes), 0);
  stack.top = end;
  stack.peak = std::max(stack.peak, end);
  return piece;
}

void give_scratch(void* piece, int64_t bytes) noexcept {
  ScratchStack& stack = scratch_stack;
  const bool is_lent = stack.top <= stack.size;
  stack.top -= bytes;
  if (!is_lent && !measuring()) retrograd::detail::free_data(piece, static_cast<size_t>(bytes), 0);
}

}  // namespace retrograd::cpu::detail
