// The kernels of CUDA devices, by op. Each family in cuda/kernels/families.h fills in its own rows; an op without a row
// is reported as unsupported. A kernel is a function on a Call, as on the CPU: it computes sizes and strides, launches on
// Gpu::current() and returns.
#pragma once

#include <span>
#include <unordered_map>

#include "cuda/kernels/families.h"
#include "engine/executor.h"

namespace retrograd::inline v0::cuda {

class Gpu;

class KernelTable {
 public:
  void set(const OpInfo* op, Kernel kernel) { kernels_[op] = kernel; }
  /// Null when there is none.
  Kernel find(const OpInfo* op) const {
    const auto it = kernels_.find(op);
    return it == kernels_.end() ? nullptr : it->second;
  }

 private:
  std::unordered_map<const OpInfo*, Kernel> kernels_;
};

#define RG_DECLARE(name, Type) void add_##name##_kernels(KernelTable& table);
RG_CUDA_FAMILIES(RG_DECLARE)
#undef RG_DECLARE

/// Whether the host computes such an op, by the CPU's kernels (cuda/kernels/by_host.cc).
bool is_by_host(const OpInfo& op);
/// Whether the vendor's library factors the matrices of such a call: it may wait for the device.
bool is_by_solver(Gpu& gpu, const OpInfo& op, std::span<const TensorType> operands);

}  // namespace retrograd::cuda
