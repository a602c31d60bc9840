// See cuda/fusion/kernel_store.h.
#include "cuda/fusion/kernel_store.h"

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

namespace retrograd::inline v0::cuda::fusion {

std::shared_ptr<const LoadedKernel> KernelStore::get(Gpu& gpu, const Source& source) {
  std::lock_guard lock(mutex_);
  const std::string key = fmt::format("{} {}", static_cast<const void*>(&gpu), source.text);
  if (const auto known = kernels_.find(key); known != kernels_.end()) return known->second;
  if (kernels_.size() == kMost || stops_) return nullptr;
  auto kernel = std::make_shared<LoadedKernel>(source.name);
  kernels_.emplace(key, kernel);
  queue_.push_back({&gpu, source, kernel});
  start_threads();
  has_work_.notify_one();
  return kernel;
}

// Called with the lock held. Compilation must leave processors to the program.
void KernelStore::start_threads() {
  const size_t most = std::clamp(std::thread::hardware_concurrency() / 2, 1u, 4u);
  if (threads_.size() < std::min(most, queue_.size() + static_cast<size_t>(running_)))
    threads_.emplace_back([this] { work(); });
}

void KernelStore::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    has_work_.wait(lock, [this] { return stops_ || !queue_.empty(); });
    if (stops_) return;
    const Job job = std::move(queue_.front());
    queue_.pop_front();
    const CodeCache cache(cache_folder_);
    ++running_;
    lock.unlock();
    make(job, cache);
    lock.lock();
    --running_;
    is_done_.notify_all();
  }
}

// A failure is noted: the group's nodes continue to run one by one.
void KernelStore::make(const Job& job, const CodeCache& cache) {
  try {
    const DeviceDescription device = job.gpu->description();
    const std::vector<std::string> options = compile_options(10 * device.major + device.minor);
    const std::string question = cache.is_on() ? question_of(job.source, options, compiler_) : "";
    if (load_kept(job, question, cache)) return;
    const Compiler::Result made = compiler_.compile(job.source, options);
    if (made.code.empty()) return failed(job, made.log);
    if (const std::string problem = load(job, made.code); !problem.empty()) return failed(job, problem);
    count(&Counts::compiled);
    if (cache.is_on()) note(cache.keep(question, made.code));
  } catch (const std::exception& e) {
    failed(job, e.what());
  }
}

void KernelStore::failed(const Job& job, std::string_view problem) {
  job.kernel->state_.store(LoadedKernel::State::failed, std::memory_order_release);
  count(&Counts::failed);
  note(fmt::format("{} is not used: {}", job.source.name, problem));
}

// Loads from the folder. Code that does not load is compiled again.
bool KernelStore::load_kept(const Job& job, const std::string& question, const CodeCache& cache) {
  if (!cache.is_on()) return false;
  const CodeCache::Found found = cache.find(question);
  note(found.note);
  if (found.code.empty() || !load(job, found.code).empty()) return false;
  count(&Counts::cache_hits);
  return true;
}

// Returns why it cannot be loaded; empty on success.
std::string KernelStore::load(const Job& job, const std::string& code) {
  Driver& driver = job.gpu->driver();
  LoadedKernel& kernel = *job.kernel;
  kernel.merges_.clear();
  CodeHandle handle = nullptr;
  Status status = driver.use(job.gpu->index());
  if (status == kSuccess) status = driver.load(&handle, code.data());
  if (status == kSuccess) status = driver.find_kernel(&kernel.kernel_, handle, job.source.name.c_str());
  for (const std::string& name : job.source.merges) {
    if (status != kSuccess) break;
    status = driver.find_kernel(&kernel.merges_.emplace_back(), handle, name.c_str());
  }
  if (status != kSuccess) return driver.text(status);
  kernel.state_.store(LoadedKernel::State::ready, std::memory_order_release);
  return {};
}

void KernelStore::set_cache(std::string folder) {
  std::lock_guard lock(mutex_);
  cache_folder_ = std::move(folder);
}

void KernelStore::finish() {
  std::unique_lock lock(mutex_);
  is_done_.wait(lock, [this] { return stops_ || (queue_.empty() && running_ == 0); });
}

void KernelStore::wait_for(const LoadedKernel& kernel) {
  std::unique_lock lock(mutex_);
  is_done_.wait(lock, [&] { return stops_ || kernel.state() != LoadedKernel::State::waiting; });
}

void KernelStore::stop() {
  std::vector<std::thread> threads;
  {
    std::lock_guard lock(mutex_);
    stops_ = true;
    queue_.clear();
    threads.swap(threads_);
  }
  has_work_.notify_all();
  is_done_.notify_all();
  for (std::thread& t : threads) t.join();
}

KernelStore::Counts KernelStore::counts() const {
  std::lock_guard lock(mutex_);
  return counts_;
}

std::string KernelStore::last_note() const {
  std::lock_guard lock(mutex_);
  return last_note_;
}

void KernelStore::count(int64_t Counts::*counter) {
  std::lock_guard lock(mutex_);
  ++(counts_.*counter);
}

void KernelStore::note(const std::string& text) {
  if (text.empty()) return;
  {
    std::lock_guard lock(mutex_);
    last_note_ = text;
  }
  std::fputs(fmt::format("[retrograd] cuda fusion: {}\n", text).c_str(), stderr);
}

}  // namespace retrograd::cuda::fusion
