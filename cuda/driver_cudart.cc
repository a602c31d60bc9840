// The CUDA runtime as a Driver, in a build with the toolkit; cuda/driver_absent.cc is its counterpart. The runtime is
// linked statically and loads the driver at its first call: such a program starts on a machine without one, and each
// call here then returns kInsufficientDriver.
//
// The runtime remembers an error, and a later launch would be blamed for it. So each function that can fail for a
// reason of its own (no memory, no device, an event that has not fired) clears the error.
#include <cuda_runtime_api.h>

#include <cstring>

#include "cuda/driver.h"

namespace retrograd::inline v0::cuda {
namespace {

static_assert(kMemoryAllocation == cudaErrorMemoryAllocation && kStubLibrary == cudaErrorStubLibrary &&
              kInsufficientDriver == cudaErrorInsufficientDriver && kNoDevice == cudaErrorNoDevice &&
              kNotReady == cudaErrorNotReady);

Status forgotten(cudaError_t status) {
  if (status != cudaSuccess) cudaGetLastError();
  return status;
}

class RuntimeDriver final : public Driver {
 public:
  Status device_count(int* count) override {
    *count = 0;  // the runtime leaves it unwritten after an error
    const Status status = forgotten(cudaGetDeviceCount(count));
    if (status != kSuccess) *count = 0;
    return status;
  }
  const char* text(Status status) override { return cudaGetErrorString(static_cast<cudaError_t>(status)); }
  Status use(int device) override { return forgotten(cudaSetDevice(device)); }
  Status memory_info(size_t* free, size_t* total) override { return forgotten(cudaMemGetInfo(free, total)); }

  Status allocate(void** memory, size_t bytes) override { return forgotten(cudaMalloc(memory, bytes)); }
  Status free(void* memory) override { return forgotten(cudaFree(memory)); }
  Status allocate_pinned(void** memory, size_t bytes) override {
    return forgotten(cudaHostAlloc(memory, bytes, cudaHostAllocDefault));
  }
  Status free_pinned(void* memory) override { return forgotten(cudaFreeHost(memory)); }

  // Not ordered with the default stream, which nothing here uses.
  Status create_stream(StreamHandle* stream) override {
    return forgotten(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking));
  }
  Status destroy_stream(StreamHandle stream) override { return forgotten(cudaStreamDestroy(stream)); }
  Status synchronize(StreamHandle stream) override { return forgotten(cudaStreamSynchronize(stream)); }

  Status create_event(EventHandle* event) override {
    return forgotten(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
  }
  Status destroy_event(EventHandle event) override { return forgotten(cudaEventDestroy(event)); }
  Status record(EventHandle event, StreamHandle stream) override {
    return forgotten(cudaEventRecord(event, stream));
  }
  Status wait(StreamHandle stream, EventHandle event) override {
    return forgotten(cudaStreamWaitEvent(stream, event, 0));
  }
  Status query(EventHandle event) override { return forgotten(cudaEventQuery(event)); }
  Status synchronize(EventHandle event) override { return forgotten(cudaEventSynchronize(event)); }

  Status copy(void* to, const void* from, size_t bytes, StreamHandle stream) override {
    return forgotten(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream));
  }
  Status last_error() override { return cudaGetLastError(); }

  // Relaxed: other threads may allocate driver memory during the capture.
  Status begin_capture(StreamHandle stream) override {
    return forgotten(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  }
  Status end_capture(StreamHandle stream, GraphHandle* graph) override {
    *graph = nullptr;
    return forgotten(cudaStreamEndCapture(stream, graph));
  }
  Status destroy_graph(GraphHandle graph) override { return forgotten(cudaGraphDestroy(graph)); }
  Status instantiate(GraphHandle graph, GraphExecHandle* exec) override {
    return forgotten(cudaGraphInstantiate(exec, graph, 0));
  }
  Status update(GraphExecHandle exec, GraphHandle graph) override {
    cudaGraphExecUpdateResultInfo why;
    return forgotten(cudaGraphExecUpdate(exec, graph, &why));
  }
  Status launch(GraphExecHandle exec, StreamHandle stream) override {
    return forgotten(cudaGraphLaunch(exec, stream));
  }
  Status destroy_exec(GraphExecHandle exec) override { return forgotten(cudaGraphExecDestroy(exec)); }

  Status load(CodeHandle* code, const void* image) override {
    return forgotten(cudaLibraryLoadData(code, image, nullptr, nullptr, 0, nullptr, nullptr, 0));
  }
  Status find_kernel(KernelHandle* kernel, CodeHandle code, const char* name) override {
    const Status status = forgotten(cudaLibraryGetKernel(kernel, code, name));
    cudaFuncAttributes attributes;  // querying them loads the code now, not at the first launch
    return status == kSuccess
               ? forgotten(cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(*kernel)))
               : status;
  }
  Status launch(KernelHandle kernel, const LaunchShape& shape, void** arguments,
                StreamHandle stream) override {
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(shape.blocks, shape.blocks_y);
    config.blockDim = dim3(shape.threads);
    config.stream = stream;
    return forgotten(cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(kernel), arguments));
  }
  std::unique_ptr<Blas> open_blas() override { return open_cublaslt(); }
  std::unique_ptr<Dnn> open_dnn(std::string& problem) override { return open_cudnn(problem); }
  std::unique_ptr<Solver> open_solver(SolverProblem& problem) override { return open_cusolver(problem); }

  Status describe(int device, DeviceDescription* d) override {
    cudaDeviceProp p;
    const Status status = forgotten(cudaGetDeviceProperties(&p, device));
    if (status != kSuccess) return status;
    std::memcpy(d->name, p.name, sizeof(d->name));
    d->major = p.major;
    d->minor = p.minor;
    d->multiprocessors = p.multiProcessorCount;
    d->memory_bytes = p.totalGlobalMem;
    d->l2_bytes = static_cast<size_t>(p.l2CacheSize);
    return status;
  }
};

}  // namespace

Driver* runtime_driver() {
  static RuntimeDriver* driver = new RuntimeDriver;  // never destroyed: tensors of static lifetime
  return driver;
}

}  // namespace retrograd::cuda
