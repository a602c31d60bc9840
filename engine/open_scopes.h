// OpenScopes<Value>: the scopes of one kind that a thread has open, each with a Value; the innermost counts.
//
// The guards that open scopes belong to users, who keep them in objects and hand them to threads: they end in any order, and on any thread.
// An entry is therefore a block of its own, held by its guard and by the list of the thread that opened it. Whoever ends it marks it. The
// thread takes marked entries off the front of its list when it looks, so others never touch the list.
#pragma once

#include <atomic>
#include <utility>

#include "engine/lifetime.h"
#include "engine/ref.h"

namespace retrograd {

template <class Value>
class OpenScopes {
  struct Entry : RefCounted {
    Entry(Value v, Entry* o) : value(std::move(v)), outer(o) {}
    static void destroy(Entry* entry) noexcept { delete entry; }
    Value value;
    Entry* const outer;  // which this entry's list holds
    std::atomic<bool> is_open{true};
  };

 public:
  /// Opens a scope on this thread, until it is destroyed, wherever that is.
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

  /// The value of this thread's innermost scope that is open; null when none is. It stays where it is until that scope ends.
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
