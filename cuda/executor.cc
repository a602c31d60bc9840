// See cuda/executor.h.
#include "cuda/executor.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "cuda/device.h"
#include "cuda/fusion/fusion.h"
#include "cuda/fusion/op_table.h"
#include "cuda/host_copy.h"
#include "cuda/kernels/launchers.h"
#include "cuda/kernels/table.h"
#include "engine/runner.h"
#include "ops/sampling.h"
#include "ops/shape_ops.h"
#include "ops/total_norm.h"

namespace retrograd::inline v0 {
namespace cuda {
namespace {

const KernelTable& table() {
  static const KernelTable& all = *[] {
    auto* made = new KernelTable;
#define RG_ADD(name, Type) add_##name##_kernels(*made);
    RG_CUDA_FAMILIES(RG_ADD)
#undef RG_ADD
    return made;
  }();
  return all;
}

struct Memory {
  Gpu* gpu;
  Allocator::Block* block;
  bool is_recorded;  // it belongs to recorded launches
};

void release(void* memory) {
  auto* m = static_cast<Memory*>(memory);
  if (m->is_recorded)
    m->gpu->rooms().give(m->block);
  else
    m->gpu->memory().free(m->block);
  delete m;
}

// Ops for which the host waits and reads the result.
bool looks_at_result(const OpInfo& op, const void* attrs) {
  return &op == &ops::info<ops::Multinomial> ||
         (&op == &ops::info<ops::TotalNorm> &&
          static_cast<const ops::TotalNorm::Attrs*>(attrs)->error_if_nonfinite);
}

bool is_switched_off(const char* variable) {
  const char* text = secure_getenv(variable);
  return text && std::strcmp(text, "0") == 0;
}

class CudaExecutor final : public Executor {
 public:
  CudaExecutor(Driver& driver, int index, const Launchers& launchers) : gpu_(driver, index, launchers) {}

  Gpu& gpu() { return gpu_; }
  std::string_view name() const override { return "cuda"; }

  // A graph may have CPU nodes between those on the device: launch() passes them on.
  Kernel find(const OpInfo* op) const override {
    const Kernel kernel = table().find(op);
    return kernel ? kernel : cpu_executor().find(op);
  }

  FusedRole fused_role(const OpInfo& op, const void* attrs, std::span<const TensorType> operands,
                       const TensorType& result) const override {
    const bool is_here = result.device == here();
    return is_here && fusion::is_available() ? fusion::role_of(op, attrs, operands, result) : FusedRole::none;
  }
  std::unique_ptr<FusedKernel> fuse(const FusedGroup& group) const override {
    return fusion::fuse(gpu_, group);
  }

  // In the order of the compute stream: freed memory may be reused even if its kernels have not run.
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
  int64_t peak_bytes() const override { return gpu_.memory().stats().peak_bytes; }
  int64_t reset_peak(int64_t at_least) override { return gpu_.memory().reset_peak(at_least); }

  std::unique_ptr<HostCopy> keep_on_host(const TensorImpl& x) override {
    return copy_to_host(gpu_, x, *static_cast<Memory*>(x.storage()->owner())->block);
  }
  void reuse(Storage& memory) override {
    if (const auto* m = static_cast<const Memory*>(memory.owner()))
      gpu_.memory().follow_uses(m->block, gpu_.compute());
  }
  bool joins_updates(const TensorType& parameter) const override { return parameter.device == here(); }
  bool records_launches() const override { return records_ && !gpu_.is_debugged(); }
  std::unique_ptr<LaunchGraph> new_graph() override { return std::make_unique<Graph>(gpu_); }
  std::string_view host_work(const OpInfo& op, const void* attrs, std::span<const TensorType> operands,
                             std::span<const TensorType> results) const override {
    const auto is_on_cpu = [](const TensorType& t) {
      return t.dtype != ScalarType::Undefined && t.device == kCPU;
    };
    if (std::ranges::any_of(results, is_on_cpu))
      return &op == &ops::info<ops::ToDevice> ? "the host waits for what it reads"
                                              : "it is computed on the CPU";
    if (std::ranges::any_of(operands, is_on_cpu)) return "it reads memory of the host";
    const auto is_elsewhere = [this](const TensorType& t) {
      return t.dtype != ScalarType::Undefined && !(t.device == here());
    };
    if (std::ranges::any_of(operands, is_elsewhere) || std::ranges::any_of(results, is_elsewhere))
      return "the host waits for another device";
    if (!table().find(&op) || is_by_host(op)) return "it is computed on the CPU";
    if (is_by_solver(gpu_, op, operands)) return "its library may wait for the device";
    return looks_at_result(op, attrs) ? "the host looks at its result" : "";
  }

 private:
  Device here() const { return Device(kCUDA, static_cast<int8_t>(gpu_.index())); }

  RefPtr<Storage> allocate(int64_t bytes, std::string_view what) {
    gpu_.begin();
    const bool is_recorded = Recording::of(gpu_);
    auto memory = std::make_unique<Memory>(&gpu_, nullptr, is_recorded);
    memory->block = is_recorded ? gpu_.rooms().take(bytes, what) : gpu_.memory().allocate(bytes, what);
    void* data = memory->block->data;
    return Storage::own(data, bytes, release, memory.release());
  }

  void check_devices(const Call& call, TensorImpl* const* outputs) const {
    if (call.op == &ops::info<ops::ToDevice>) return;
    for (const TensorImpl* x : call.operands)
      if (x && !(x->device() == here()))
        fail_call(call, Category::bad_argument, "operands are on different devices");
    for (int i = 0; i < call.outputs; ++i) RG_ASSERT(outputs[i]->device() == here());
  }

  mutable Gpu gpu_;  // mutable: fused kernels run on it
  const bool records_ = !is_switched_off("RETROGRAD_CUDA_GRAPHS");
};

// The devices, and the driver they come from.
struct Devices {
  std::mutex mutex;
  Driver* driver = runtime_driver();
  const Launchers* launchers = &device_code::launchers();
  std::array<CudaExecutor*, 128> executors{};
  std::vector<CudaExecutor*> replaced;  // of earlier drivers: tensors may still use their memory

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
  fusion::use_compiler(nullptr);
  Devices& devices = Devices::instance();
  std::lock_guard lock(devices.mutex);
  devices.driver = &driver;
  devices.launchers = &launchers;
  for (CudaExecutor*& executor : devices.executors)
    if (executor) devices.replaced.push_back(std::exchange(executor, nullptr));
}

}  // namespace cuda

Executor& cuda_executor(int index) { return cuda::Devices::instance().at(index); }

}  // namespace retrograd
