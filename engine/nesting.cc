// See engine/nesting.h. The stack of a thread is queried once. On another stack, such as that of a coroutine, only
// calls are counted.
#include "engine/nesting.h"

#include <pthread.h>

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "engine/error.h"

namespace retrograd::inline v0 {
namespace {

constinit thread_local int depth = 0;

struct Stack {
  uintptr_t begin = 0, end = 0;  // it grows down to begin

  static Stack of_this_thread() {
    Stack stack;
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return stack;
    void* lowest = nullptr;
    size_t size = 0;
    if (pthread_attr_getstack(&attributes, &lowest, &size) == 0) {
      stack.begin = reinterpret_cast<uintptr_t>(lowest);
      stack.end = stack.begin + size;
    }
    pthread_attr_destroy(&attributes);
    return stack;
  }
  // The reserve is for one more call, with the kernels that it runs, and for an error that unwinds all of them.
  bool is_nearly_full(uintptr_t here) const {
    constexpr uintptr_t kReserve = 320 * 1024;
    return here >= begin && here < end && here - begin < std::min(kReserve, (end - begin) / 3);
  }
};

bool is_stack_nearly_full() {
  thread_local const Stack stack = Stack::of_this_thread();
  return stack.is_nearly_full(reinterpret_cast<uintptr_t>(__builtin_frame_address(0)));
}

[[noreturn]] void fail_depth(std::string_view op, std::string_view what, SourceLocation where) {
  fail(Category::bad_argument, op,
       fmt::format(
           "calls that hooks and functions make {}. Hint: a hook that calls backward on a graph with this "
           "very hook never ends",
           what),
       where);
}

}  // namespace

Nesting::Nesting(std::string_view op, SourceLocation where) {
  if (depth >= kMost) fail_depth(op, fmt::format("nest more than {} deep", kMost), where);
  if (is_stack_nearly_full())
    fail_depth(op, fmt::format("nest {} deep, which fills the stack of this thread", depth), where);
  ++depth;
}

Nesting::~Nesting() { --depth; }

}  // namespace retrograd
