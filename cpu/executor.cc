// The CPU executor: kernels found in a table, run at once on the calling thread and the pool.
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
    const KernelTable::Row& row = table_.find(op);
    return dtype == kFloat32 ? row.f32 : dtype == kFloat64 ? row.f64 : nullptr;
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
