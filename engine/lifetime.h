// Actions at the end of a thread, and at the unloading of the shared library or program that holds this code.
//
// They do not use thread_local objects with destructors: glibc keeps a library loaded as long as a thread lives that
// has one. A pthread key, which is deleted when the library is unloaded, tells the end of a thread. So dlclose can
// unload a plug-in that contains this library, when its tensors are gone and no thread runs its code: the workers of
// parallel loops are ended, and free memory is returned to the system.
//
// At exit() the actions of the calling thread run, too, last of all. Limits: what other threads hold then, or when the
// library is unloaded, is lost. When the process has no pthread key left, the ends of other threads are not noticed.
#pragma once

#pragma GCC visibility push(default)
namespace retrograd::inline v0::detail {

/// An action that runs once: an object of thread-local (at_thread_end) or static (at_unload) lifetime.
struct AtEnd {
  void (*end)() noexcept;
  AtEnd* next = nullptr;
  bool is_listed = false;
};

/// Calls `at.end()` when this thread ends, after the thread_local objects of user code are destroyed, in reverse order
/// of listing. An object that is listed twice is called once; after the call it may be listed again. False when it will
/// not be called.
bool at_thread_end(AtEnd& at) noexcept;

/// Calls `at.end()` when this code is unloaded or the process exits, after all destructors of static objects next to
/// it, in reverse order of listing.
void at_unload(AtEnd& at) noexcept;

}  // namespace retrograd::detail
#pragma GCC visibility pop
