// A fused group on a device in the form for the engine.
#pragma once

#include "cuda/fusion/arguments.h"
#include "cuda/fusion/kernel_store.h"

namespace retrograd::inline v0::cuda::fusion {

/// The kernels of the process; null if groups are not fused.
KernelStore* store();
/// Whether each run waits for its kernel.
bool is_waiting();

/// Numbers of runs, as one kernel and otherwise, since the start of the process.
struct RunCounts {
  std::atomic<int64_t> groups{0}, launches{0}, one_by_one{0};
};
RunCounts& run_counts();

/// A group; each run launches the kernel for the layouts of its tensors. The compilation of that kernel begins when
/// such layouts first occur, not before: while plans are made, many groups are considered that are then divided
/// differently. After kMostVariants, one kernel is used for all layouts. A run whose kernel is being compiled needs
/// more memory, and waits for the kernel if there is not enough.
class CudaFusedKernel final : public FusedKernel {
 public:
  static constexpr size_t kMostVariants = 4;

  CudaFusedKernel(Gpu& gpu, Group group);

  /// No memory that the caller could give: device memory comes from its allocator.
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
