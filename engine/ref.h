// RefPtr<T>: an intrusive, atomically counted pointer, and RefCounted, the counter. WeakRef<T>: a pointer that keeps
// the block of T, hence its address, but not what T holds.
// Locked instructions are skipped where they are not needed: when the only owner drops the last reference, and as long
// as the process has one thread (glibc keeps track of that, for the same use in std::shared_ptr). T provides `static
// void destroy(T*) noexcept`. add_relaxed() is such an addition for other counters.
// For WeakRef, T is a WeaklyCounted: destroy() asks may_destroy(), drops what T holds, then its weak reference; who
// drops the last one calls T::free_block(). All references together count as one weak reference.
#pragma once

#include <sys/single_threaded.h>

#include <atomic>
#include <cstdint>
#include <utility>

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

/// The new value.
template <class T>
T add_relaxed(std::atomic<T>& counter, T n) {
  if (!__libc_single_threaded) return counter.fetch_add(n, std::memory_order_relaxed) + n;
  const T value = counter.load(std::memory_order_relaxed) + n;
  counter.store(value, std::memory_order_relaxed);
  return value;
}

class RefCounted {
 public:
  void add_ref() const { add_relaxed(refs_, uint32_t{1}); }
  /// True when the last reference was dropped.
  bool drop_ref() const {
    const uint32_t refs = refs_.load(std::memory_order_acquire);
    if (refs == 1) return true;
    if (!__libc_single_threaded) return refs_.fetch_sub(1, std::memory_order_acq_rel) == 1;
    refs_.store(refs - 1, std::memory_order_relaxed);
    return false;
  }
  bool is_unique() const { return refs_.load(std::memory_order_acquire) == 1; }
  uint32_t ref_count() const { return refs_.load(std::memory_order_relaxed); }

 private:
  friend class WeaklyCounted;
  mutable std::atomic<uint32_t> refs_{1};
};

class WeaklyCounted : public RefCounted {
 public:
  void add_weak_ref() const { add_relaxed(weak_refs_, uint32_t{1}); }
  /// True when the block is to be freed.
  bool drop_weak_ref() const { return weak_refs_.fetch_sub(1, std::memory_order_acq_rel) == 1; }
  bool has_weak_refs() const { return weak_refs_.load(std::memory_order_acquire) != 1; }
  /// Adds a reference if there is one still.
  bool revive() const {
    uint32_t refs = refs_.load(std::memory_order_relaxed);
    while (refs != 0)
      if (refs_.compare_exchange_weak(refs, refs + 1, std::memory_order_acquire, std::memory_order_relaxed))
        return true;
    return false;
  }
  /// To be asked by destroy(): drop_ref() may have left the last reference in place, and a WeakRef may have added
  /// another one since.
  bool may_destroy() const {
    if (!has_weak_refs()) return true;
    return refs_.load(std::memory_order_acquire) == 0 || refs_.fetch_sub(1, std::memory_order_acq_rel) == 1;
  }

 private:
  mutable std::atomic<uint32_t> weak_refs_{1};
};

template <class T>
class RefPtr {
 public:
  constexpr RefPtr() = default;
  constexpr RefPtr(std::nullptr_t) {}
  /// Takes over the reference that the caller holds.
  static RefPtr adopt(T* p) {
    RefPtr r;
    r.p_ = p;
    return r;
  }
  /// Adds a reference.
  explicit RefPtr(T* p) : p_(p) {
    if (p_) p_->add_ref();
  }
  RefPtr(const RefPtr& o) : p_(o.p_) {
    if (p_) p_->add_ref();
  }
  RefPtr(RefPtr&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  RefPtr& operator=(const RefPtr& o) {
    RefPtr(o).swap(*this);
    return *this;
  }
  RefPtr& operator=(RefPtr&& o) noexcept {
    RefPtr(std::move(o)).swap(*this);
    return *this;
  }
  ~RefPtr() { reset(); }

  void reset() {
    if (T* p = std::exchange(p_, nullptr); p && p->drop_ref()) T::destroy(p);
  }
  void swap(RefPtr& o) noexcept { std::swap(p_, o.p_); }
  T* release() { return std::exchange(p_, nullptr); }

  T* get() const { return p_; }
  T* operator->() const { return p_; }
  T& operator*() const { return *p_; }
  explicit operator bool() const { return p_ != nullptr; }
  friend bool operator==(const RefPtr& a, const RefPtr& b) { return a.p_ == b.p_; }

 private:
  T* p_ = nullptr;
};

/// Not atomic itself: one thread at a time may assign to it.
template <class T>
class WeakRef {
 public:
  WeakRef() = default;
  explicit WeakRef(T& of) : p_(&of) { p_->add_weak_ref(); }
  WeakRef(const WeakRef& o) : p_(o.p_) {
    if (p_) p_->add_weak_ref();
  }
  WeakRef(WeakRef&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  WeakRef& operator=(WeakRef o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~WeakRef() {
    if (p_ && p_->drop_weak_ref()) T::free_block(p_);
  }
  /// Null when the last reference is gone. Threads may call it while others drop theirs.
  RefPtr<T> lock() const { return p_ && p_->revive() ? RefPtr<T>::adopt(p_) : RefPtr<T>(); }
  bool expired() const { return !p_ || p_->ref_count() == 0; }
  /// Also of one that is gone; no other object has it as long as this one exists.
  const T* address() const { return p_; }

 private:
  T* p_ = nullptr;
};

}  // namespace retrograd
#pragma GCC visibility pop
