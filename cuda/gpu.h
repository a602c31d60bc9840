// Gpu: one device and its streams, memory, pinned memory, health, and kernels.
//
// Work on the compute stream runs in the order in which it was put there; copies between host and device wait for it.
// Kernels do not get the Gpu as an argument: Gpu::current() is the one whose call this thread is running (set by the
// executor).
//
// float32 products and convolutions may be computed in TensorFloat-32, with 13 bits fewer, if that is allowed:
// allow_tf32, or RETROGRAD_CUDA_TF32=1. use_dnn, or RETROGRAD_CUDA_DNN (cuda/dnn.h), decides which convolutions the
// vendor's library computes; use_solver, or RETROGRAD_CUDA_SOLVER (cuda/solver.h), does so for factorisations of
// matrices.
//
// Debug mode (set_debug, or RETROGRAD_CUDA_DEBUG=1 in the environment): the host waits for the device after each
// launch, so that an error has the name of the op that caused it.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "cuda/allocator.h"
#include "cuda/faults.h"
#include "cuda/graph.h"
#include "cuda/pinned.h"

namespace retrograd::inline v0::cuda {

struct Launchers;

class Gpu {
 public:
  /// The device `index` of the driver. DeviceError when it cannot be used.
  Gpu(Driver& driver, int index, const Launchers& launchers);
  Gpu(const Gpu&) = delete;

  int index() const { return index_; }
  DeviceDescription description();
  Driver& driver() { return driver_; }
  Health& health() { return health_; }
  const Launchers& launchers() const { return launchers_; }
  Allocator& memory() { return memory_; }
  const Allocator& memory() const { return memory_; }
  PinnedPool& pinned() { return pinned_; }
  Faults& faults() { return faults_; }
  Rooms& rooms() { return rooms_; }
  /// While this thread records launches, the stream that they are captured from.
  Stream& compute() {
    Recording* recording = Recording::of(*this);
    return recording ? recording->stream() : compute_;
  }
  Stream& to_device() { return to_device_; }
  Stream& to_host() { return to_host_; }

  /// To be called before work is given to the device on this thread: makes it the thread's device, unless this function
  /// did so before; DeviceError when it is lost. Other code that calls cudaSetDevice on this thread must restore the
  /// device, as libraries do.
  void begin();
  /// To be called after a launch on the compute stream, with the name of the op. DeviceError.
  void launched(std::string_view op);
  /// Waits for the compute stream. DeviceError; an Error of a kernel, such as index_out_of_range.
  void synchronize() {
    compute_.synchronize();
    faults_.look();
  }
  void set_debug(bool on) { debug_ = on; }
  bool is_debugged() const { return debug_.load(std::memory_order_relaxed); }
  void allow_tf32(bool allowed) { allows_tf32_ = allowed; }
  bool allows_tf32() const { return allows_tf32_.load(std::memory_order_relaxed); }

  /// The library of products, opened by the first call, and Blas::kWorkspace bytes for its use on the compute stream.
  struct Products {
    Blas* blas;  // null: there is none
    void* workspace;
  };
  Products products();

  /// The library of convolutions, opened by the first call; null: there is none, and dnn_problem() says why.
  Dnn* dnn();
  const std::string& dnn_problem() {
    dnn();
    return dnn_problem_;
  }
  void use_dnn(DnnUse use) { dnn_use_ = use; }
  DnnUse dnn_use() const { return dnn_use_.load(std::memory_order_relaxed); }
  DnnStats dnn_stats() const { return {dnn_computed_, dnn_declined_}; }
  void count_dnn(bool computed) { ++(computed ? dnn_computed_ : dnn_declined_); }

  /// The library of factorisations, opened by the first call; null: there is none, and solver_problem() says why. A
  /// library that could not be initialised is tried again by the next call; a missing one is not.
  Solver* solver();
  bool is_solver_absent() const { return solver_is_absent_.load(std::memory_order_relaxed); }
  std::string solver_problem();
  /// To be called before steps are compiled: they fix whether a factorisation is a step of the host.
  void use_solver(SolverUse use) { solver_use_ = use; }
  SolverUse solver_use() const { return solver_use_.load(std::memory_order_relaxed); }
  SolverStats solver_stats() const { return {solver_matrices_[0], solver_matrices_[1], solver_matrices_[2]}; }
  void count_solver(SolverOutcome outcome, int64_t matrices) {
    solver_matrices_[static_cast<size_t>(outcome)] += matrices;
  }
  /// Called when a library has failed, perhaps because memory outside of our allocator is short: returns unused memory
  /// to the driver. False: there is none.
  bool make_room();

  /// How often the numbers of a run were copied to where started graphs read them (HeldNumbers).
  int64_t number_uploads() const { return number_uploads_; }
  void count_number_upload() { ++number_uploads_; }

  /// Copies on the compute stream, through pinned memory; host memory may be of any kind. upload() returns when host
  /// memory has been read, download() when it has been written.
  void upload(void* device, const void* host, int64_t bytes);
  /// upload() that runs immediately, also while this thread records launches.
  void upload_now(void* device, const void* host, int64_t bytes) { upload(device, host, bytes, nullptr); }
  void download(void* host, const void* device, int64_t bytes);
  /// download() without a check for faults.
  void read(void* host, const void* device, int64_t bytes);
  /// Within the device.
  void copy(void* to, const void* from, int64_t bytes);

  /// The Gpu whose call this thread is running.
  static Gpu& current();
  class Scope {
   public:
    explicit Scope(Gpu& gpu);
    ~Scope();
    Scope(const Scope&) = delete;

   private:
    Gpu* before_;
  };

 private:
  void upload(void* device, const void* host, int64_t bytes, Recording* recording);

  Driver& driver_;
  const int index_;
  const Launchers& launchers_;
  Health health_;
  const bool in_use_;  // initialised first: the device becomes this thread's before streams are made on it
  Allocator memory_;
  PinnedPool pinned_;
  Stream compute_, to_device_, to_host_;
  Faults faults_{*this};
  Rooms rooms_{memory_};
  std::atomic<bool> debug_, allows_tf32_;
  std::once_flag opens_blas_;
  std::unique_ptr<Blas> blas_;
  Allocator::Block* workspace_ = nullptr;
  std::once_flag opens_dnn_;
  std::unique_ptr<Dnn> dnn_;
  std::string dnn_problem_;
  std::atomic<DnnUse> dnn_use_;
  std::atomic<int64_t> dnn_computed_{0}, dnn_declined_{0}, number_uploads_{0};
  std::mutex opens_solver_;
  std::unique_ptr<Solver> solver_;
  std::string solver_problem_;
  std::atomic<bool> solver_is_absent_{false};
  std::atomic<SolverUse> solver_use_;
  std::atomic<int64_t> solver_matrices_[3]{};  // by SolverOutcome
};

}  // namespace retrograd::cuda
