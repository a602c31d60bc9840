// A check for tests: each call that the executor runs uses exactly the temporary memory that was measured for it.
//
// While `scratch_is_checked` is set (CheckScratch sets it for a scope), the executor and fused groups hand
// each run to run_checked(), which lends it an area of the measured size and then compares. The conformance
// runner and tests/ops/derivatives run all ops this way. The flag is global and atomic: the check covers the
// calls of all threads.
#pragma once

#include <atomic>
#include <string_view>

#include "cpu/scratch.h"

namespace retrograd::inline v0::cpu {

/// While it is set, each launch and each run of a group goes through run_checked().
inline std::atomic<bool> scratch_is_checked{false};

/// Sets it for a scope.
class CheckScratch {
 public:
  CheckScratch() : before_(scratch_is_checked.exchange(true)) {}
  ~CheckScratch() { scratch_is_checked = before_; }
  CheckScratch(const CheckScratch&) = delete;

 private:
  bool before_;
};

/// Runs f() in an area of `bytes` bytes. InternalError if f() uses more or less at a time, or if any thread allocates
/// tensor data meanwhile.
void run_checked(std::string_view name, int64_t bytes, void (*f)(void*), void* context);

template <class F>
void run_checked(std::string_view name, int64_t bytes, F&& f) {
  run_checked(
      name, bytes, [](void* context) { (*static_cast<std::remove_reference_t<F>*>(context))(); }, &f);
}

}  // namespace retrograd::cpu
