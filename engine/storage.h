// Storage: a reference-counted block of element memory, shared by a tensor, its views and its detached tensors, with
// their common version counter.
// One allocation: this 64-byte header, then the data. For memory of a device, and for external memory (from_blob), the
// header points elsewhere.
// Every in-place operation raises the version; an unpack compares it with the version at the save. The place of the
// last write is kept for the error message.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>

#include "engine/allocator.h"
#include "engine/location.h"
#include "engine/open_scopes.h"
#include "engine/ref.h"
#include "engine/shape.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

class Storage;

/// Called before a thread writes to memory in place, while a scope of it is open on that thread: holders of old values
/// copy them then.
class WriteWatcher {
 public:
  using Scopes = OpenScopes<std::shared_ptr<WriteWatcher>>;
  virtual void before_write(const Storage& memory) = 0;

 protected:
  ~WriteWatcher() = default;
};

class Storage : public RefCounted {
 public:
  /// Uninitialised memory on the CPU.
  static RefPtr<Storage> allocate(int64_t bytes);
  /// Memory of a device, owned by this storage alone: `release(context)` frees it when the last user is gone.
  static RefPtr<Storage> own(void* data, int64_t bytes, void (*release)(void*), void* context);
  /// Memory owned by somebody else; `release(context)` is called when the last user is gone.
  static RefPtr<Storage> wrap(void* data, int64_t bytes, void (*release)(void*), void* context);
  static void destroy(Storage* storage) noexcept;

  /// For wrapped memory: releases it and refers to other memory instead.
  void rewrap(void* data, int64_t bytes, void (*release)(void*), void* context);

  void* data() const { return data_; }
  int64_t nbytes() const { return nbytes_; }
  uint32_t version() const { return version_.load(std::memory_order_relaxed); }
  /// For memory that was given to own(): its context; else null.
  void* owner() const { return owned_ ? context_ : nullptr; }
  /// Memory that belongs to somebody else.
  bool is_external() const { return external_ && !owned_; }
  /// To be called before a write that will raise the version.
  void will_be_written() const {
    if (const std::shared_ptr<WriteWatcher>* watcher = WriteWatcher::Scopes::innermost())
      (*watcher)->before_write(*this);
  }
  void bump_version(SourceLocation where = {}) {
    version_.fetch_add(1, std::memory_order_relaxed);
    written_at_ = where;
  }
  /// The same, to a version above `other`: where this memory takes the place of memory with that version.
  void raise_version_above(uint32_t other, SourceLocation where) {
    version_.store(std::max(version(), other) + 1, std::memory_order_relaxed);
    written_at_ = where;
  }
  /// Memory of a tensor that was computed in inference mode (engine/grad_mode.h).
  bool is_inference() const { return inference_; }
  void mark_inference() { inference_ = true; }
  /// The place of the last in-place write; empty when unknown.
  SourceLocation written_at() const { return written_at_; }
  /// A number that, up to 2^32 storages, no other has: an address may be used again. Given when first asked for.
  uint32_t identity() const {
    const uint32_t given = identity_.load(std::memory_order_relaxed);
    return given ? given : give_identity();
  }

 private:
  Storage(void* data, int64_t bytes) : data_(data), nbytes_(bytes) {}
  uint32_t give_identity() const;

  std::atomic<uint32_t> version_{0};
  void* data_;
  int64_t nbytes_;
  void (*release_)(void*) = nullptr;
  void* context_ = nullptr;
  SourceLocation written_at_;
  bool external_ = false;  // the data does not follow this header
  bool owned_ = false;     // external data, but owned by this storage
  bool inference_ = false;
  mutable std::atomic<uint32_t> identity_{0};
};

inline constexpr size_t kStorageHeader = 64;
static_assert(sizeof(Storage) <= kStorageHeader);

inline RefPtr<Storage> Storage::allocate(int64_t bytes) {
  void* block = detail::allocate_data(static_cast<size_t>(bytes), kStorageHeader);
  return RefPtr<Storage>::adopt(new (block) Storage(static_cast<char*>(block) + kStorageHeader, bytes));
}

}  // namespace retrograd
#pragma GCC visibility pop
