// The kernels of CUDA devices, by op. Each family in cuda/kernels fills in its own rows; an op without a row is reported as unsupported.
// A kernel is a function on a Call, as on the CPU: it works out sizes and strides, launches on Gpu::current() and returns.
#pragma once

#include <span>
#include <unordered_map>

#include "engine/executor.h"

namespace retrograd::cuda {

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

void add_elementwise_kernels(KernelTable& table);
void add_copy_kernels(KernelTable& table);
void add_reduce_kernels(KernelTable& table);
void add_softmax_kernels(KernelTable& table);
void add_norm_kernels(KernelTable& table);
void add_class_loss_kernels(KernelTable& table);
void add_scan_kernels(KernelTable& table);
void add_random_kernels(KernelTable& table);
void add_sampling_kernels(KernelTable& table);
void add_rearrange_kernels(KernelTable& table);
void add_index_kernels(KernelTable& table);
void add_sort_kernels(KernelTable& table);
void add_optimizer_kernels(KernelTable& table);
void add_matmul_kernels(KernelTable& table);
void add_attention_kernels(KernelTable& table);
void add_convolution_kernels(KernelTable& table);
void add_grid_kernels(KernelTable& table);
void add_linalg_kernels(KernelTable& table);
void add_determinant_kernels(KernelTable& table);
/// Whether the vendor's library factors the matrices of such a call: it may wait for the device.
bool is_by_solver(Gpu& gpu, const OpInfo& op, std::span<const TensorType> operands);

}  // namespace retrograd::cuda
