// See cuda/gpu.h.
#include "cuda/gpu.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace retrograd::inline v0::cuda {
namespace {

constinit thread_local Gpu* current_gpu = nullptr;
constinit thread_local const Gpu* device_of_thread = nullptr;  // the device of the last cudaSetDevice

// Pinned memory for a copy: larger copies are divided into pieces of this size.
constexpr int64_t kPiece = int64_t{32} << 20;

bool use_now(Driver& driver, Health& health, int index) {
  health.check(driver.use(index), "choosing the device");
  return true;
}

bool is_asked_for(const char* variable) {
  const char* text = secure_getenv(variable);
  return text && *text && std::strcmp(text, "0") != 0;
}

// The use of a library, from an environment variable: 0, 1 (or not set), all.
template <class Use>
Use use_asked_for(const char* variable) {
  const char* text = secure_getenv(variable);
  if (!text || !*text) return Use::where_it_wins;
  if (std::strcmp(text, "all") == 0) return Use::wherever_it_can;
  return std::strcmp(text, "0") == 0 ? Use::never : Use::where_it_wins;
}

}  // namespace

Gpu::Gpu(Driver& driver, int index, const Launchers& launchers)
    : driver_(driver),
      index_(index),
      launchers_(launchers),
      health_(driver, index),
      in_use_(use_now(driver, health_, index)),
      memory_(driver, health_),
      pinned_(driver, health_),
      compute_(driver, health_),
      to_device_(driver, health_),
      to_host_(driver, health_),
      debug_(is_asked_for("RETROGRAD_CUDA_DEBUG")),
      allows_tf32_(is_asked_for("RETROGRAD_CUDA_TF32")),
      dnn_use_(use_asked_for<DnnUse>("RETROGRAD_CUDA_DNN")),
      solver_use_(use_asked_for<SolverUse>("RETROGRAD_CUDA_SOLVER")) {
  device_of_thread = this;
}

DeviceDescription Gpu::description() {
  DeviceDescription result;
  health_.check(driver_.describe(index_, &result), "asking what the device is");
  return result;
}

void Gpu::begin() {
  health_.require();
  if (device_of_thread == this) return;
  health_.check(driver_.use(index_), "choosing the device");
  device_of_thread = this;
}

void Gpu::launched(std::string_view op) {
  health_.check(driver_.last_error(), op);
  faults_.launched();
  if (!debug_.load(std::memory_order_relaxed)) return;
  compute_.synchronize(op);
  faults_.look();
}

Gpu::Products Gpu::products() {
  std::call_once(opens_blas_, [this] {
    std::unique_ptr<Blas> blas = driver_.open_blas();
    if (blas) workspace_ = memory_.allocate(Blas::kWorkspace, "workspace of products");
    blas_ = std::move(blas);
  });
  return {blas_.get(), workspace_ ? workspace_->data : nullptr};
}

Dnn* Gpu::dnn() {
  std::call_once(opens_dnn_, [this] { dnn_ = driver_.open_dnn(dnn_problem_); });
  return dnn_.get();
}

Solver* Gpu::solver() {
  std::lock_guard lock(opens_solver_);
  if (solver_ || is_solver_absent()) return solver_.get();
  begin();  // plans query this before anything is launched
  SolverProblem problem;
  solver_ = driver_.open_solver(problem);
  if (!solver_ && problem.may_pass && make_room()) solver_ = driver_.open_solver(problem);
  solver_problem_ = solver_ ? "" : problem.text;
  solver_is_absent_ = !solver_ && !problem.may_pass;
  return solver_.get();
}

std::string Gpu::solver_problem() {
  solver();
  std::lock_guard lock(opens_solver_);
  return solver_problem_;
}

bool Gpu::make_room() {
  driver_.last_error();  // clears the library's failure, which is not ours; a lost device reports it again
  return memory_.trim() > 0;
}

void Gpu::upload(void* device, const void* host, int64_t bytes) {
  upload(device, host, bytes, Recording::of(*this));
}

void Gpu::upload(void* device, const void* host, int64_t bytes, Recording* recording) {
  Stream& stream = recording ? recording->stream() : compute_;
  for (int64_t at = 0; at < bytes; at += kPiece) {
    const auto n = static_cast<size_t>(std::min(kPiece, bytes - at));
    const PinnedPool::Block block = pinned_.take(n);
    std::memcpy(block.data, static_cast<const char*>(host) + at, n);
    const Status status = driver_.copy(static_cast<char*>(device) + at, block.data, n, stream.handle());
    if (status != kSuccess) pinned_.give(block);
    health_.check(status, "copying to the device");
    if (recording)
      recording->keep(block);
    else
      pinned_.give(block, compute_);
  }
}

void Gpu::download(void* host, const void* device, int64_t bytes) {
  read(host, device, bytes);
  faults_.look();
}

void Gpu::read(void* host, const void* device, int64_t bytes) {
  for (int64_t at = 0; at < bytes; at += kPiece) {
    const auto n = static_cast<size_t>(std::min(kPiece, bytes - at));
    const PinnedPool::Block block = pinned_.take(n);
    Status status = driver_.copy(block.data, static_cast<const char*>(device) + at, n, compute().handle());
    if (status == kSuccess) status = driver_.synchronize(compute().handle());
    if (status == kSuccess) std::memcpy(static_cast<char*>(host) + at, block.data, n);
    pinned_.give(block);
    health_.check(status, "copying to the host");
  }
}

void Gpu::copy(void* to, const void* from, int64_t bytes) {
  if (bytes == 0) return;
  const Status status = driver_.copy(to, from, static_cast<size_t>(bytes), compute().handle());
  health_.check(status, "copying on the device");
  if (is_debugged()) compute_.synchronize("copying on the device");
}

Gpu& Gpu::current() {
  RG_ASSERT(current_gpu);
  return *current_gpu;
}

Gpu::Scope::Scope(Gpu& gpu) : before_(std::exchange(current_gpu, &gpu)) {}
Gpu::Scope::~Scope() { current_gpu = before_; }

}  // namespace retrograd::cuda
