// PinnedPool: host memory that a device can copy from and to while the host continues.
//
// Allocating such memory takes milliseconds, so it is never freed before the end: blocks of powers of two, from 4 KiB,
// are cached. A block that copies still use rests until its event has fired. All functions may be called from several
// threads.
#pragma once

#include <map>
#include <mutex>
#include <vector>

#include "cuda/stream.h"

namespace retrograd::inline v0::cuda {

class PinnedPool {
 public:
  struct Block {
    void* data;
    size_t size;
  };
  PinnedPool(Driver& driver, Health& health) : driver_(driver), health_(health) {}
  ~PinnedPool();
  PinnedPool(const PinnedPool&) = delete;

  /// At least `bytes`. OutOfMemory when the driver has none.
  Block take(size_t bytes);
  /// The block is free when all work so far on `stream` is done.
  void give(Block block, Stream& stream);
  /// It is free immediately.
  void give(Block block) noexcept;
  /// Bytes taken from the driver.
  int64_t reserved_bytes() const;

 private:
  struct Resting {
    Block block;
    Event until;
  };
  void wake_fired() noexcept;

  Driver& driver_;
  Health& health_;
  mutable std::mutex mutex_;
  std::map<size_t, std::vector<void*>> free_;  // by size
  std::vector<Resting> resting_;
  int64_t reserved_ = 0;
};

}  // namespace retrograd::cuda
