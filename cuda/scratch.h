// Scratch: memory of the device for one call. It is freed when its owner goes, before the kernels that use it have run: the allocator gives it
// away again in the order of the compute stream, behind them. A launch that is recorded gets memory that only recorded launches use, since
// the graph will use it whenever it is started.
#pragma once

#include "cuda/gpu.h"

namespace retrograd::cuda {

class Scratch {
 public:
  /// On Gpu::current(), for the op of this name. OutOfMemory.
  Scratch(int64_t bytes, std::string_view op)
      : gpu_(Gpu::current()),
        is_recorded_(Recording::of(gpu_)),
        block_(is_recorded_ ? gpu_.rooms().take(bytes, op) : gpu_.memory().allocate(bytes, op)) {}
  ~Scratch() {
    if (is_recorded_)
      gpu_.rooms().give(block_);
    else
      gpu_.memory().free(block_);
  }
  Scratch(const Scratch&) = delete;
  void* data() const { return block_->data; }

 private:
  Gpu& gpu_;
  const bool is_recorded_;
  Allocator::Block* block_;
};

}  // namespace retrograd::cuda
