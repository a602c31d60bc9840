// A fused group on a device as the engine runs it.
#pragma once

#include "cuda/fusion/arguments.h"
#include "cuda/fusion/kernel_store.h"

namespace retrograd::cuda::fusion {

/// The kernels of the process; null where groups are not fused.
KernelStore* store();
/// Whether each run waits for its kernel.
bool is_waiting();

/// Runs, as one kernel and otherwise, since the start of the process.
struct RunCounts {
  std::atomic<int64_t> groups{0}, launches{0}, one_by_one{0};
};
RunCounts& run_counts();

/// A group of which each run launches the kernel for the layouts that its tensors have. That kernel begins to
/// be compiled when such layouts are first seen, not before: whoever makes plans asks for groups that are
/// then cut otherwise. After kMostVariants, one serves all layouts. A run whose kernel is being compiled
/// takes more memory, and waits for it where there is not enough.
class CudaFusedKernel final : public FusedKernel {
 public:
  static constexpr size_t kMostVariants = 4;

  CudaFusedKernel(Gpu& gpu, Group group);

  /// None that the caller could give: memory of a device comes from its allocator.
  int64_t scratch_bytes() const override { return 0; }
  void run(TensorImpl* const* inputs, TensorImpl* const* outputs, const void* const* attrs,
           std::span<std::byte> scratch) const override;
  Temporary temporary(TensorImpl* const* inputs, TensorImpl* const* outputs) const override;
  void run_one_by_one(TensorImpl* const* inputs, TensorImpl* const* outputs,
                      const void* const* attrs) const override;
  /// A thread reads all of its elements before it writes one.
  bool may_overwrite(int input, int output) const override;

 private:
  struct Made {
    Variant variant;
    std::shared_ptr<const LoadedKernel> kernel;  // null: none is made
  };

  std::shared_ptr<const LoadedKernel> kernel_for(Placement& placement, bool waits) const;
  std::shared_ptr<const LoadedKernel> asked_for(Placement& placement) const;
  bool is_reduced_as_it_lies(const Placement& placement) const;
  int64_t bytes_of_partials() const;
  int64_t bytes_one_by_one(TensorImpl* const* inputs, TensorImpl* const* outputs) const;
  bool lies_on_input(TensorImpl* const* inputs, const TensorImpl& x) const;
  bool is_dead_after(int32_t operand, size_t node) const;
  void launch(const LoadedKernel& kernel, const Placement& placement, TensorImpl* const* inputs,
              TensorImpl* const* outputs, const void* const* attrs) const;
  void run_nodes(TensorImpl* const* inputs, TensorImpl* const* outputs, const void* const* attrs) const;

  Gpu& gpu_;
  const Group group_;
  std::vector<size_t> reductions_;  // nodes
  mutable std::mutex mutex_;
  mutable std::vector<Made> made_;
};

}  // namespace retrograd::cuda::fusion
