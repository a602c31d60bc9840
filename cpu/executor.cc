// The CPU executor: kernels found in a table, run at once on the calling thread and the pool.
#include "cpu/fused.h"
#include "cpu/fused_draft.h"
#include "cpu/kernels/table.h"
#include "engine/runner.h"

namespace retrograd {
namespace cpu {
namespace {

class CpuExecutor final : public Executor {
 public:
  CpuExecutor() {
    add_elementwise_kernels(table_);
    add_copy_kernels(table_);
    add_reduce_kernels(table_);
    add_scan_kernels(table_);
    add_softmax_kernels(table_);
    add_norm_kernels(table_);
    add_class_loss_kernels(table_);
    add_matmul_kernels(table_);
    add_convolution_kernels(table_);
    add_attention_kernels(table_);
    add_random_kernels(table_);
    add_sampling_kernels(table_);
    add_join_kernels(table_);
    add_rearrange_kernels(table_);
    add_index_kernels(table_);
    add_sort_kernels(table_);
    add_linalg_kernels(table_);
    add_determinant_kernels(table_);
    add_pooling_kernels(table_);
    add_interpolate_kernels(table_);
    add_optimizer_kernels(table_);
  }
  std::string_view name() const override { return "cpu"; }
  Kernel find(const OpInfo* op) const override { return table_.find(op).kernel; }
  SpanKernel find_span(const OpInfo* op, ScalarType dtype) const override {
    const Spans* spans = table_.find(op).spans;
    if (!spans || spans->boolean) return nullptr;
    return dtype == kFloat32 ? spans->f32 : dtype == kFloat64 ? spans->f64 : nullptr;
  }
  FusedRole fused_role(const OpInfo& op, const void* attrs, std::span<const TensorType> operands,
                       const TensorType& result) const override {
    return cpu::fused_role(table_, op, attrs, operands, result);
  }
  std::unique_ptr<FusedKernel> fuse(const FusedGroup& group) const override {
    return fuse_group(group, table_);
  }
  void allocate(TensorImpl& cell) override { cell.allocate(); }
  void launch(Kernel kernel, const Call& call, TensorImpl* const* outputs) override { kernel(call, outputs); }

 private:
  KernelTable table_;
};

}  // namespace
}  // namespace cpu

// Never destroyed: tensors of static lifetime may still run ops while the process exits.
Executor& cpu_executor() {
  static Executor* executor = new cpu::CpuExecutor;
  return *executor;
}

}  // namespace retrograd
