// Storage: a counted block of element memory, shared by a tensor, its views and its detaches, with the version counter they share.
// One allocation: this 64-byte header, then the data. Memory of a device, and of others (from_blob), has a header that points elsewhere.
// The version is raised by every in-place operation; a slot compares it at unpack with what it was at save. Where the last one was made is
// kept for the error.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "engine/allocator.h"
#include "engine/location.h"
#include "engine/open_scopes.h"
#include "engine/ref.h"
#include "engine/shape.h"

namespace retrograd {

class Storage;

/// Told before a thread writes to memory in place, while a scope of it is open there: who keeps old values copies them then.
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
  /// Memory of a device, this storage's alone: `release(context)` gives it back when the last user is gone.
  static RefPtr<Storage> own(void* data, int64_t bytes, void (*release)(void*), void* context);
  /// Memory owned by somebody else; `release(context)` is called when the last user is gone.
  static RefPtr<Storage> wrap(void* data, int64_t bytes, void (*release)(void*), void* context);
  static void destroy(Storage* storage) noexcept;

  /// Of wrapped memory: lets go of it and shows other memory instead.
  void rewrap(void* data, int64_t bytes, void (*release)(void*), void* context);

  void* data() const { return data_; }
  int64_t nbytes() const { return nbytes_; }
  uint32_t version() const { return version_.load(std::memory_order_relaxed); }
  /// Of memory that was given to own(): its context; else null.
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
  /// Of the last write in place; empty when it is not known.
  SourceLocation written_at() const { return written_at_; }

 private:
  Storage(void* data, int64_t bytes) : data_(data), nbytes_(bytes) {}

  std::atomic<uint32_t> version_{0};
  void* data_;
  int64_t nbytes_;
  void (*release_)(void*) = nullptr;
  void* context_ = nullptr;
  SourceLocation written_at_;
  bool external_ = false;  // the data is not behind this header
  bool owned_ = false;     // external data, but nobody else's
};

inline constexpr size_t kStorageHeader = 64;
static_assert(sizeof(Storage) <= kStorageHeader);

inline RefPtr<Storage> Storage::allocate(int64_t bytes) {
  void* block = detail::allocate_data(static_cast<size_t>(bytes), kStorageHeader);
  return RefPtr<Storage>::adopt(new (block) Storage(static_cast<char*>(block) + kStorageHeader, bytes));
}

}  // namespace retrograd
