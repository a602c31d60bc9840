// Scratch: memory of the device for one call. It is freed when its owner goes, before the kernels that use it have run: the allocator gives it
// away again in the order of the compute stream, behind them.
#pragma once

#include "cuda/gpu.h"

namespace retrograd::cuda {

class Scratch {
 public:
  /// On Gpu::current(), for the op of this name. OutOfMemory.
  Scratch(int64_t bytes, std::string_view op)
      : memory_(Gpu::current().memory()), block_(memory_.allocate(bytes, op)) {}
  ~Scratch() { memory_.free(block_); }
  Scratch(const Scratch&) = delete;
  void* data() const { return block_->data; }

 private:
  Allocator& memory_;
  Allocator::Block* block_;
};

}  // namespace retrograd::cuda
