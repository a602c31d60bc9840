// Scratch: memory of the device for one call. It is freed when its owner goes, before the kernels that use it have run: the allocator gives it
// away again in the order of the compute stream, behind them. A launch that is recorded gets memory that only recorded launches use, since
// the graph will use it whenever it is started. What launches take that are not recorded is counted (engine/device_scratch.h).
#pragma once

#include "cuda/gpu.h"
#include "engine/device_scratch.h"

namespace retrograd::cuda {

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

}  // namespace retrograd::cuda
