// A check for tests, of every call that the executor runs: what it asks for is what it was measured to ask for.
#pragma once

#include <atomic>
#include <string_view>

#include "cpu/scratch.h"

namespace retrograd::cpu {

/// While it is set, run_checked() stands for each launch and each run of a group.
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

/// Runs f() in an area of `bytes` bytes. InternalError when it asks for more or less at a time, or when tensor
/// data is allocated meanwhile, by any thread.
void run_checked(std::string_view name, int64_t bytes, void (*f)(void*), void* context);

template <class F>
void run_checked(std::string_view name, int64_t bytes, F&& f) {
  run_checked(
      name, bytes, [](void* context) { (*static_cast<std::remove_reference_t<F>*>(context))(); }, &f);
}

}  // namespace retrograd::cpu
