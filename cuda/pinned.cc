// See cuda/pinned.h.
#include "cuda/pinned.h"

#include <algorithm>
#include <bit>

#include "engine/error.h"

namespace retrograd::inline v0::cuda {
namespace {

constexpr size_t kLeast = 4096;

}  // namespace

PinnedPool::~PinnedPool() {
  for (Resting& r : resting_) {
    driver_.synchronize(r.until.handle());
    driver_.free_pinned(r.block.data);
  }
  for (const auto& [size, blocks] : free_)
    for (void* data : blocks) driver_.free_pinned(data);
}

void PinnedPool::wake_fired() noexcept {
  std::erase_if(resting_, [&](const Resting& r) {
    if (driver_.query(r.until.handle()) == kNotReady) return false;
    free_[r.block.size].push_back(r.block.data);
    return true;
  });
}

PinnedPool::Block PinnedPool::take(size_t bytes) {
  const size_t size = std::bit_ceil(std::max(bytes, kLeast));
  std::lock_guard lock(mutex_);
  wake_fired();
  std::vector<void*>& blocks = free_[size];
  if (!blocks.empty()) {
    void* data = blocks.back();
    blocks.pop_back();
    return {data, size};
  }
  void* data = nullptr;
  const Status status = driver_.allocate_pinned(&data, size);
  if (status == kMemoryAllocation) throw OutOfMemory(static_cast<int64_t>(size), reserved_, 0);
  health_.check(status, "allocating pinned memory");
  reserved_ += static_cast<int64_t>(size);
  return {data, size};
}

void PinnedPool::give(Block block, Stream& stream) {
  Event until(driver_, health_);
  stream.record(until);
  std::lock_guard lock(mutex_);
  resting_.push_back({block, std::move(until)});
}

void PinnedPool::give(Block block) noexcept {
  std::lock_guard lock(mutex_);
  free_[block.size].push_back(block.data);
}

int64_t PinnedPool::reserved_bytes() const {
  std::lock_guard lock(mutex_);
  return reserved_;
}

}  // namespace retrograd::cuda
