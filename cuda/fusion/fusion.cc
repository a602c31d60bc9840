// See cuda/fusion/fusion.h.
#include "cuda/fusion/fusion.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <utility>

#include "cuda/fusion/fused_kernel.h"

namespace retrograd::inline v0::cuda {
namespace fusion {
namespace {

// Never destroyed, like the devices. The compiler is searched for at the first query.
//
// At exit the threads must have ended before the exit handlers of NVRTC and the driver free what a compilation uses.
// Those libraries register handlers as late as in the middle of a compilation, and handlers run in reverse order: one
// of ours is not early enough. Thread-local objects of the main thread are destroyed before any handler runs, so one of
// them stops the store (StopsAtEnd). The handler is for a process that ends by exit() on another thread, or whose main
// thread never used a device.
struct Stores {
  std::mutex mutex;
  bool is_decided = false;
  std::atomic<bool> waits = false;
  std::unique_ptr<KernelStore> store;
  std::string problem;

  // With the lock held.
  void decide() {
    if (is_decided) return;
    const char* wanted = secure_getenv("RETROGRAD_CUDA_FUSION");
    if (wanted && std::strcmp(wanted, "0") == 0)
      use(nullptr, "RETROGRAD_CUDA_FUSION=0");
    else
      use(nvrtc(), nvrtc_problem());
    if (wanted && std::strcmp(wanted, "wait") == 0) waits = true;
  }
  void use(Compiler* compiler, std::string why_not) {
    store = compiler ? std::make_unique<KernelStore>(*compiler) : nullptr;
    problem = compiler ? "" : std::move(why_not);
    if (!std::exchange(is_decided, true)) std::atexit(stop);
  }
  static void stop() {
    if (instance().store) instance().store->stop();
  }
  static Stores& instance() {
    static Stores* stores = new Stores;
    return *stores;
  }
};

struct StopsAtEnd {
  ~StopsAtEnd() {
    if (getpid() == gettid()) Stores::stop();  // other threads end while the process goes on
  }
};

}  // namespace

KernelStore* store() {
  thread_local const StopsAtEnd stops_at_end;
  Stores& stores = Stores::instance();
  std::lock_guard lock(stores.mutex);
  stores.decide();
  return stores.store.get();
}

bool is_waiting() { return Stores::instance().waits; }
void set_waiting(bool waits) { Stores::instance().waits = waits; }

RunCounts& run_counts() {
  static RunCounts counts;
  return counts;
}

void use_compiler(Compiler* compiler) {
  Stores& stores = Stores::instance();
  std::lock_guard lock(stores.mutex);
  stores.use(compiler, "no compiler");
}

bool is_available() { return store() != nullptr; }

std::unique_ptr<FusedKernel> fuse(Gpu& gpu, const FusedGroup& group) {
  if (!is_available()) return nullptr;
  std::optional<Group> read = read_group(group);
  if (!read || !has_room(*read)) return nullptr;
  return std::make_unique<CudaFusedKernel>(gpu, *std::move(read));
}

}  // namespace fusion

FusionStats fusion_stats() {
  const fusion::RunCounts& runs = fusion::run_counts();
  FusionStats stats;
  stats.groups = runs.groups;
  stats.launches = runs.launches;
  stats.one_by_one = runs.one_by_one;
  if (const fusion::KernelStore* kernels = fusion::store()) {
    const fusion::KernelStore::Counts counts = kernels->counts();
    stats.compiled = counts.compiled;
    stats.cache_hits = counts.cache_hits;
    stats.failed = counts.failed;
  }
  return stats;
}

std::string fusion_problem() {
  fusion::Stores& stores = fusion::Stores::instance();
  std::lock_guard lock(stores.mutex);
  stores.decide();
  return stores.problem;
}

std::string last_fusion_note() {
  const fusion::KernelStore* kernels = fusion::store();
  return kernels ? kernels->last_note() : "";
}

void finish_compiling() {
  if (fusion::KernelStore* kernels = fusion::store()) kernels->finish();
}

void set_kernel_cache(std::string_view folder) {
  if (fusion::KernelStore* kernels = fusion::store()) kernels->set_cache(std::string(folder));
}

}  // namespace retrograd::cuda
