// run_checked(): see cpu/scratch_check.h.
//
// The memory is taken before the count of allocations begins, so that the area itself is not counted. The
// count is that of the whole process: a test that allocates on another thread in the meantime would fail for
// no reason. The error is an InternalError, because it is the kernel, and not the caller, that is wrong.
#include "cpu/scratch_check.h"

#include <fmt/format.h>

#include "engine/allocator.h"
#include "engine/error.h"

namespace retrograd::inline v0::cpu {

void run_checked(std::string_view name, int64_t bytes, void (*f)(void*), void* context) {
  const Scratch<std::byte> memory(bytes);
  const int64_t before = memory::stats().allocations;
  int64_t asked;
  {
    const ScratchArea area({memory.data(), static_cast<size_t>(bytes)});
    f(context);
    asked = area.peak();
  }
  const int64_t allocations = memory::stats().allocations - before;
  if (asked == bytes && allocations == 0) return;
  throw InternalError(fmt::format("{} was measured to need {} bytes, asked for {} and allocated {} times",
                                  name, bytes, asked, allocations));
}

}  // namespace retrograd::cpu
