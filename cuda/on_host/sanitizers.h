// Annotations of the scheduler for the sanitizers. ThreadSanitizer is told to ignore the scheduler's own memory, and
// where threads are ordered; AddressSanitizer is told which stack a fiber runs on (in scheduler.cc). Empty without
// sanitizers.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
extern "C" void AnnotateIgnoreReadsBegin(const char*, int), AnnotateIgnoreReadsEnd(const char*, int),
    AnnotateIgnoreWritesBegin(const char*, int), AnnotateIgnoreWritesEnd(const char*, int);
#endif

namespace on_host {

#if defined(__SANITIZE_THREAD__)
#define ON_HOST_QUIET __attribute__((no_sanitize("thread")))
inline constexpr bool kFiberPerThread = true;
struct Quiet {  // the scheduler's own memory is not the kernel's
  ON_HOST_QUIET Quiet() {
    AnnotateIgnoreReadsBegin("", 0);
    AnnotateIgnoreWritesBegin("", 0);
  }
  ON_HOST_QUIET ~Quiet() {
    AnnotateIgnoreWritesEnd("", 0);
    AnnotateIgnoreReadsEnd("", 0);
  }
};
#else
#define ON_HOST_QUIET
inline constexpr bool kFiberPerThread = false;
struct Quiet {
  Quiet() {}
};
inline void __tsan_acquire(void*) {}
inline void __tsan_release(void*) {}
#endif

}  // namespace on_host
