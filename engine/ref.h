// RefPtr<T>: an intrusive, atomically counted pointer, and RefCounted, the counter.
// Locked instructions are skipped where they are not needed: when the only owner drops the last reference, and as long
// as the process has one thread (glibc keeps track of that, for the same use in std::shared_ptr). T provides `static
// void destroy(T*) noexcept`. add_relaxed() is such an addition for other counters.
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
  mutable std::atomic<uint32_t> refs_{1};
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

}  // namespace retrograd
#pragma GCC visibility pop
