// OpenScopes<Value>: the open scopes of one kind on a thread, each with a Value; the innermost counts.
//
// The guards that open scopes belong to users, who keep them in objects and hand them to threads: they end in any
// order, and on any thread. An entry is therefore a block of its own, held by its guard and by the list of the thread
// that opened it. The end of a guard marks the entry. The thread itself removes marked entries from the front of its
// list when it reads it, so no other thread touches the list.
#pragma once

#include <atomic>
#include <utility>

#include "engine/lifetime.h"
#include "engine/ref.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

template <class Value>
class OpenScopes {
  struct Entry : RefCounted {
    Entry(Value v, Entry* o) : value(std::move(v)), outer(o) {}
    static void destroy(Entry* entry) noexcept { delete entry; }
    Value value;
    Entry* const outer;  // this entry holds a reference to it
    std::atomic<bool> is_open{true};
  };

 public:
  /// Opens a scope on this thread. It ends when the guard is destroyed, on any thread.
  class Guard {
   public:
    explicit Guard(Value value) : entry_(RefPtr<Entry>::adopt(new Entry(std::move(value), first_open()))) {
      entry_->add_ref();
      first_ = entry_.get();
      detail::at_thread_end(at_end_);
    }
    ~Guard() {
      entry_->is_open.store(false, std::memory_order_release);
      first_open();
    }
    Guard(const Guard&) = delete;

   private:
    RefPtr<Entry> entry_;
  };

  /// The value of this thread's innermost open scope; null when there is none. Its address is valid until that scope
  /// ends.
  static Value* innermost() {
    if (!first_) [[likely]]
      return nullptr;
    Entry* const entry = first_open();
    return entry ? &entry->value : nullptr;
  }

 private:
  static Entry* first_open() noexcept {
    while (first_ && !first_->is_open.load(std::memory_order_acquire)) drop_first();
    return first_;
  }
  static void drop_first() noexcept { RefPtr<Entry>::adopt(std::exchange(first_, first_->outer)); }
  static void drop_all() noexcept {
    while (first_) drop_first();
  }

  static inline constinit thread_local Entry* first_ = nullptr;
  static inline constinit thread_local detail::AtEnd at_end_{&drop_all};
};

}  // namespace retrograd
#pragma GCC visibility pop
