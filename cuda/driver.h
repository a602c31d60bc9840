// Driver: the calls of the CUDA runtime that the library makes on the host.
//
// Everything in the device layer (streams, allocator, pinned memory, errors) is written against this table, for two
// reasons: it is tested with a stand-in on machines without a device, and only one file includes cuda_runtime_api.h,
// cuda/driver_cudart.cc. In a build without the toolkit cuda/driver_absent.cc replaces it. The library's own kernels
// are not launched through it but by the code that nvcc generates (cuda/kernels/launch.h); last_error() tells whether a
// launch was accepted. Kernels that were compiled at run time (cuda/fusion) are loaded and launched here.
//
// A Status is a cudaError_t as a number; 0 is success. No function throws. Handles are the runtime's own pointers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "cuda/blas.h"
#include "cuda/dnn.h"
#include "cuda/solver.h"

struct CUstream_st;
struct CUevent_st;
struct CUgraph_st;
struct CUgraphExec_st;
struct CUlib_st;
struct CUkern_st;

namespace retrograd::inline v0::cuda {

using Status = int;
using StreamHandle = CUstream_st*;
using EventHandle = CUevent_st*;
using GraphHandle = CUgraph_st*;
using GraphExecHandle = CUgraphExec_st*;
using CodeHandle = CUlib_st*;
using KernelHandle = CUkern_st*;

// The codes that the library distinguishes.
inline constexpr Status kSuccess = 0, kMemoryAllocation = 2, kStubLibrary = 34, kInsufficientDriver = 35,
                        kNoDevice = 100, kNotReady = 600;

/// Blocks of a grid, threads of a block.
struct LaunchShape {
  unsigned blocks, blocks_y, threads;
};

/// The properties of a device.
struct DeviceDescription {
  char name[256] = "";
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  size_t memory_bytes = 0, l2_bytes = 0;
};

class Driver {
 public:
  virtual ~Driver() = default;
  virtual Status device_count(int* count) = 0;
  virtual const char* text(Status status) = 0;
  /// Makes a device the current one for this thread's calls.
  virtual Status use(int device) = 0;
  virtual Status memory_info(size_t* free, size_t* total) = 0;

  virtual Status allocate(void** memory, size_t bytes) = 0;
  virtual Status free(void* memory) = 0;
  virtual Status allocate_pinned(void** memory, size_t bytes) = 0;
  virtual Status free_pinned(void* memory) = 0;

  virtual Status create_stream(StreamHandle* stream) = 0;
  virtual Status destroy_stream(StreamHandle stream) = 0;
  virtual Status synchronize(StreamHandle stream) = 0;

  virtual Status create_event(EventHandle* event) = 0;
  virtual Status destroy_event(EventHandle event) = 0;
  virtual Status record(EventHandle event, StreamHandle stream) = 0;
  /// Later work on `stream` begins when `event` has fired.
  virtual Status wait(StreamHandle stream, EventHandle event) = 0;
  /// kSuccess when it has fired, else kNotReady.
  virtual Status query(EventHandle event) = 0;
  virtual Status synchronize(EventHandle event) = 0;

  /// Between any two memories of device and pinned host.
  virtual Status copy(void* to, const void* from, size_t bytes, StreamHandle stream) = 0;
  /// The error of the last call or launch of this thread, which is then cleared.
  virtual Status last_error() = 0;

  // Graphs. A captured graph is the work that would have been put on a stream; it runs as an executable copy.
  /// Until end_capture(), work for this stream, from any thread, is recorded and not run.
  virtual Status begin_capture(StreamHandle stream) = 0;
  /// Ends the capture in any case; *graph is null after an error.
  virtual Status end_capture(StreamHandle stream, GraphHandle* graph) = 0;
  virtual Status destroy_graph(GraphHandle graph) = 0;
  virtual Status instantiate(GraphHandle graph, GraphExecHandle* exec) = 0;
  /// From its next launch on, exec is a copy of `graph`. An error when the graph has other nodes; then exec must not be
  /// launched any more.
  virtual Status update(GraphExecHandle exec, GraphHandle graph) = 0;
  virtual Status launch(GraphExecHandle exec, StreamHandle stream) = 0;
  /// Requires that none of its launches is still running.
  virtual Status destroy_exec(GraphExecHandle exec) = 0;

  /// The library of products for the current device; null: there is none.
  virtual std::unique_ptr<Blas> open_blas() = 0;
  /// The library of convolutions for the current device; null: there is none, and `problem` says why.
  virtual std::unique_ptr<Dnn> open_dnn(std::string& problem) = 0;
  /// The library of factorisations for the current device; null: there is none, and `problem` says why.
  virtual std::unique_ptr<Solver> open_solver(SolverProblem& problem) = 0;

  /// Machine code as the compiler produced it; the image is copied. It stays loaded.
  virtual Status load(CodeHandle* code, const void* image) = 0;
  virtual Status find_kernel(KernelHandle* kernel, CodeHandle code, const char* name) = 0;
  /// `arguments`: the address of each of the kernel's parameters.
  virtual Status launch(KernelHandle kernel, const LaunchShape& shape, void** arguments,
                        StreamHandle stream) = 0;
  virtual Status describe(int device, DeviceDescription* description) = 0;
};

/// The CUDA runtime; null in a build without it.
Driver* runtime_driver();

}  // namespace retrograd::cuda
