// What is done when a thread ends, and when the shared library or program that holds this code is unloaded.
//
// Not by thread_local objects with destructors: glibc keeps a library loaded as long as a thread lives that has one. The end of a thread is
// told by a pthread key, which goes when the library is unloaded. So a plug-in with this library inside can be unloaded by dlclose, when its
// tensors are gone and no thread runs its code: the workers of parallel loops are ended, and free memory goes back to the system.
//
// At exit() the thread that calls it is told of its end, too, last of all. Limits: what other threads have then, or when the library is
// unloaded, is lost. Where the process has no pthread key left, no other thread is told.
#pragma once

namespace retrograd::detail {

/// Something to do, once: an object of thread-local (at_thread_end) or static (at_unload) lifetime.
struct AtEnd {
  void (*end)() noexcept;
  AtEnd* next = nullptr;
  bool is_listed = false;
};

/// Calls `at.end()` when this thread ends, after thread_local objects of the user's are destroyed; what was listed last comes first. Listed
/// twice, it is called once; it may be listed again when it has been called. False when it will not be called.
bool at_thread_end(AtEnd& at) noexcept;

/// Calls `at.end()` when this code is unloaded or the process exits, behind all destructors of static objects beside it; what was listed last
/// comes first.
void at_unload(AtEnd& at) noexcept;

}  // namespace retrograd::detail
