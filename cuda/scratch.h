// Scratch: device memory for one call. It is freed with its owner, before the kernels that use it have run: the
// allocator reuses it in the order of the compute stream, after them. A recorded launch gets memory that only recorded
// launches use, since the graph uses it at each start. Memory of launches that are not recorded is counted
// (engine/device_scratch.h).
#pragma once

#include <optional>

#include "cuda/gpu.h"
#include "engine/device_scratch.h"

namespace retrograd::inline v0::cuda {

class Scratch {
 public:
  /// On Gpu::current(), for the op of this name. OutOfMemory.
  Scratch(int64_t bytes, std::string_view op)
      : gpu_(Gpu::current()),
        is_recorded_(Recording::of(gpu_)),
        block_(is_recorded_ ? gpu_.rooms().take(bytes, op) : gpu_.memory().allocate(bytes, op)) {
    if (!is_recorded_) device_scratch.take(block_->requested);
  }
  ~Scratch() {
    if (is_recorded_) {
      gpu_.rooms().give(block_);
    } else {
      device_scratch.give(block_->requested);
      gpu_.memory().free(block_);
    }
  }
  Scratch(const Scratch&) = delete;
  void* data() const { return block_->data; }

 private:
  Gpu& gpu_;
  const bool is_recorded_;
  Allocator::Block* block_;
};

/// Host bytes in device memory, for one call. Recorded launches find them there whenever their graph is started
/// (cuda/graph.h: Table).
class Uploaded {
 public:
  /// On Gpu::current(), for the op of this name. OutOfMemory, DeviceError.
  Uploaded(std::span<const std::byte> bytes, std::string_view op) {
    Gpu& gpu = Gpu::current();
    if (Recording* recording = Recording::of(gpu)) {
      data_ = recording->table(bytes, op);
      return;
    }
    memory_.emplace(static_cast<int64_t>(bytes.size()), op);
    gpu.upload(memory_->data(), bytes.data(), static_cast<int64_t>(bytes.size()));
    data_ = memory_->data();
  }
  const void* data() const { return data_; }

 private:
  std::optional<Scratch> memory_;
  const void* data_ = nullptr;
};

}  // namespace retrograd::cuda
