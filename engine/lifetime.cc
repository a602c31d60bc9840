// See engine/lifetime.h. There are two lists; that of a thread is the value of the pthread key.
#include "engine/lifetime.h"

#include <pthread.h>

#include <mutex>
#include <utility>

namespace retrograd::inline v0::detail {
namespace {

void call_all(AtEnd*& first) noexcept {
  while (AtEnd* at = first) {
    first = std::exchange(at->next, nullptr);
    at->is_listed = false;
    at->end();
  }
}

void list(AtEnd& at, AtEnd*& first) noexcept {
  if (!std::exchange(at.is_listed, true)) at.next = std::exchange(first, &at);
}

constinit thread_local AtEnd* thread_ends = nullptr;
constinit std::mutex mutex;
constinit AtEnd* unloads = nullptr;  // under the mutex

void end_thread(void*) { call_all(thread_ends); }

struct Key {
  pthread_key_t key = 0;
  bool exists = false;

  Key() : exists(pthread_key_create(&key, end_thread) == 0) {}
};

const Key& key() {
  static const Key made;
  return made;
}

// Runs after the destructors of static objects, which the C++ runtime calls earlier at exit.
[[gnu::destructor(101)]] void unload() {
  call_all(thread_ends);
  AtEnd* all;
  {
    const std::lock_guard lock(mutex);
    all = std::exchange(unloads, nullptr);
  }
  call_all(all);
  if (key().exists) pthread_key_delete(key().key);
}

}  // namespace

// A non-null value only tells that there is something to do.
bool at_thread_end(AtEnd& at) noexcept {
  if (at.is_listed) return true;
  if (!key().exists || pthread_setspecific(key().key, &thread_ends) != 0) return false;
  list(at, thread_ends);
  return true;
}

void at_unload(AtEnd& at) noexcept {
  const std::lock_guard lock(mutex);
  list(at, unloads);
}

}  // namespace retrograd::detail
