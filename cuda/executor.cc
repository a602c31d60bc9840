// See cuda/executor.h.
#include "cuda/executor.h"

#include <array>

#include <fmt/format.h>

#include "cuda/device.h"
#include "cuda/kernels/launchers.h"
#include "cuda/kernels/table.h"
#include "engine/runner.h"
#include "ops/shape_ops.h"

namespace retrograd {
namespace cuda {
namespace {

const KernelTable& table() {
  static const KernelTable& all = *[] {
    auto* made = new KernelTable;
    add_elementwise_kernels(*made);
    add_copy_kernels(*made);
    add_reduce_kernels(*made);
    add_softmax_kernels(*made);
    add_norm_kernels(*made);
    add_class_loss_kernels(*made);
    add_scan_kernels(*made);
    add_random_kernels(*made);
    add_rearrange_kernels(*made);
    add_index_kernels(*made);
    add_sort_kernels(*made);
    add_optimizer_kernels(*made);
    add_matmul_kernels(*made);
    add_attention_kernels(*made);
    add_convolution_kernels(*made);
    add_grid_kernels(*made);
    return made;
  }();
  return all;
}

struct Memory {
  Gpu* gpu;
  Allocator::Block* block;
};

void release(void* memory) {
  auto* m = static_cast<Memory*>(memory);
  m->gpu->memory().free(m->block);
  delete m;
}

class CudaExecutor final : public Executor {
 public:
  CudaExecutor(Driver& driver, int index, const Launchers& launchers) : gpu_(driver, index, launchers) {}

  Gpu& gpu() { return gpu_; }
  std::string_view name() const override { return "cuda"; }

  // A graph may have nodes on the CPU between those on the device: launch() hands them on.
  Kernel find(const OpInfo* op) const override {
    const Kernel kernel = table().find(op);
    return kernel ? kernel : cpu_executor().find(op);
  }

  // In the order of the compute stream: memory that was freed may be given away again though its kernels have not run.
  RefPtr<Storage> allocate_memory(int64_t bytes) override { return allocate(bytes, "arena"); }

  void allocate(TensorImpl& cell) override {
    if (cell.device() == kCPU) return cell.allocate();
    contiguous_strides(cell.shape(), cell.mutable_strides());
    cell.set_storage_offset(0);
    cell.set_storage(allocate(
        Dim::checked_mul(cell.numel().raw(), static_cast<int64_t>(element_size(cell.dtype()))), "tensor"));
  }

  void launch(Kernel, const Call& call, TensorImpl* const* outputs, std::span<std::byte>) override {
    if (device_of(call, outputs) == kCPU)
      return cpu_executor().launch(cpu_executor().find(call.op), call, outputs);
    check_devices(call, outputs);
    gpu_.begin();
    const Gpu::Scope scope(gpu_);
    const Kernel kernel = table().find(call.op);
    if (!kernel) fail_call(call, Category::unsupported, "the cuda executor has no kernel for it");
    kernel(call, outputs);
  }

  void synchronize() override { gpu_.synchronize(); }
  int64_t live_bytes() const override { return gpu_.memory().stats().live_bytes; }
  int64_t reset_peak(int64_t at_least) override { return gpu_.memory().reset_peak(at_least); }

 private:
  RefPtr<Storage> allocate(int64_t bytes, std::string_view what) {
    gpu_.begin();
    auto memory = std::make_unique<Memory>(&gpu_, gpu_.memory().allocate(bytes, what));
    void* data = memory->block->data;
    return Storage::own(data, bytes, release, memory.release());
  }

  void check_devices(const Call& call, TensorImpl* const* outputs) const {
    if (call.op == &ops::info<ops::ToDevice>) return;
    const Device here(kCUDA, static_cast<int8_t>(gpu_.index()));
    for (const TensorImpl* x : call.operands)
      if (x && !(x->device() == here))
        fail_call(call, Category::bad_argument, "operands are on different devices");
    for (int i = 0; i < call.outputs; ++i) RG_ASSERT(outputs[i]->device() == here);
  }

  Gpu gpu_;
};

// The devices, and where they come from.
struct Devices {
  std::mutex mutex;
  Driver* driver = runtime_driver();
  const Launchers* launchers = &device_code::launchers();
  std::array<CudaExecutor*, 128> executors{};

  static Devices& instance() {
    static Devices* devices = new Devices;
    return *devices;
  }

  CudaExecutor& at(int index) {
    std::lock_guard lock(mutex);
    const int count = device_count(driver);
    if (index < 0 || index >= count)
      fail(Category::bad_argument, fmt::format("cuda:{}", index),
           count > 0 ? fmt::format("there are {} devices", count) : unavailable_reason(driver));
    CudaExecutor*& executor = executors[static_cast<size_t>(index)];
    if (!executor) executor = new CudaExecutor(*driver, index, *launchers);
    return *executor;
  }
};

}  // namespace

Gpu& gpu_of(int index) { return Devices::instance().at(index).gpu(); }

void use_driver(Driver& driver, const Launchers& launchers) {
  Devices& devices = Devices::instance();
  std::lock_guard lock(devices.mutex);
  devices.driver = &driver;
  devices.launchers = &launchers;
  devices.executors = {};
}

}  // namespace cuda

Executor& cuda_executor(int index) { return cuda::Devices::instance().at(index); }

}  // namespace retrograd
