// The compiled kernels of a process: each text is compiled once for each device, on the store's own threads.
//
// get() returns a LoadedKernel immediately; it becomes ready later, or fails. Both states are final. A ready kernel
// stays loaded until the process ends, since its launches may outlive a plan. Texts depend on the form of a group and
// not on sizes, so there are few. Beyond kMost nothing more is compiled, and get() returns null.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "cuda/fusion/code_cache.h"
#include "cuda/gpu.h"

namespace retrograd::inline v0::cuda::fusion {

/// A kernel, and the kernels that merge the parts of its reductions. The handles are valid when is_ready().
class LoadedKernel {
 public:
  enum class State : uint8_t { waiting, ready, failed };
  explicit LoadedKernel(std::string name) : name_(std::move(name)) {}
  /// The name in profilers and errors: its first few ops, and a hash.
  const std::string& name() const { return name_; }
  bool is_ready() const { return state() == State::ready; }
  State state() const { return state_.load(std::memory_order_acquire); }
  KernelHandle kernel() const { return kernel_; }
  KernelHandle merge(size_t reduction) const { return merges_[reduction]; }

 private:
  friend class KernelStore;
  const std::string name_;
  std::atomic<State> state_{State::waiting};
  KernelHandle kernel_ = nullptr;
  std::vector<KernelHandle> merges_;
};

class KernelStore {
 public:
  static constexpr size_t kMost = 4096;

  explicit KernelStore(Compiler& compiler) : compiler_(compiler) {}
  /// Waits for running compilations; queued ones are dropped.
  ~KernelStore() { stop(); }
  KernelStore(const KernelStore&) = delete;

  /// The kernel of a text on a device.
  std::shared_ptr<const LoadedKernel> get(Gpu& gpu, const Source& source);
  void set_cache(std::string folder);
  /// Waits until nothing is being compiled or queued.
  void finish();
  /// Waits until the kernel is ready or has failed.
  void wait_for(const LoadedKernel& kernel);
  /// Ends all compilation.
  void stop();

  struct Counts {
    int64_t compiled = 0, cache_hits = 0, failed = 0;
  };
  Counts counts() const;
  std::string last_note() const;

 private:
  struct Job {
    Gpu* gpu;
    Source source;
    std::shared_ptr<LoadedKernel> kernel;
  };

  void start_threads();
  void work();
  void make(const Job& job, const CodeCache& cache);
  bool load_kept(const Job& job, const std::string& question, const CodeCache& cache);
  std::string load(const Job& job, const std::string& code);
  void failed(const Job& job, std::string_view problem);
  void count(int64_t Counts::*counter);
  void note(const std::string& text);

  Compiler& compiler_;
  mutable std::mutex mutex_;
  std::condition_variable has_work_, is_done_;
  std::unordered_map<std::string, std::shared_ptr<LoadedKernel>> kernels_;  // by device and text
  std::deque<Job> queue_;
  std::vector<std::thread> threads_;
  std::string cache_folder_ = CodeCache::folder_of_environment();
  int running_ = 0;
  bool stops_ = false;
  Counts counts_;
  std::string last_note_;
};

}  // namespace retrograd::cuda::fusion
