// cuSOLVER as a Solver: its header is used if the toolkit has it; its functions are looked up when it is opened
// (cuda/cusolver_functions.h).
//
// It uses the interface with 64-bit sizes. That may also need host memory, and the documentation does not say when a
// call has finished with it: sizes that need it are declined.
#include "cuda/solver.h"

#if __has_include(<cusolverDn.h>)
#include <mutex>

#include "cuda/cusolver_functions.h"

namespace retrograd::inline v0::cuda {
namespace {

using Functions = CusolverFunctions;

bool succeeds(cusolverStatus_t status) { return status == CUSOLVER_STATUS_SUCCESS; }

cudaDataType data_type(SolverType type) { return type == SolverType::f64 ? CUDA_R_64F : CUDA_R_32F; }

cublasFillMode_t triangle(Factors wanted) {
  return wanted == Factors::upper ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER;
}

class Cusolver final : public Solver {
 public:
  explicit Cusolver(const Functions& f) : f_(f) {}
  ~Cusolver() override {
    if (parameters_) f_.DnDestroyParams(parameters_);
    if (handle_) f_.DnDestroy(handle_);
  }

  bool open(SolverProblem& problem) {
    if (const cusolverStatus_t status = f_.DnCreate(&handle_); !succeeds(status)) {
      handle_ = nullptr;
      problem = {"cusolverDnCreate: status " + std::to_string(status),
                 status != CUSOLVER_STATUS_ARCH_MISMATCH};
      return false;
    }
    if (succeeds(f_.DnCreateParams(&parameters_))) return true;
    parameters_ = nullptr;
    problem = {"cusolverDnCreateParams", true};
    return false;
  }

  std::string name() const override {
    int version = 0;  // 12004 is 12.0.4
    f_.GetVersion(&version);
    return "cuSOLVER " + std::to_string(version / 1000) + "." + std::to_string(version / 100 % 10) + "." +
           std::to_string(version % 100);
  }

  std::optional<int64_t> workspace(const SolverCall& c) override {
    std::lock_guard lock(mutex_);
    size_t here = 0, there = 0;
    if (!needs(c, there, here) || here > 0 || there > size_t{INT64_MAX}) return {};
    return static_cast<int64_t>(there);
  }

  bool factor(const SolverCall& c, void* workspace, int64_t bytes, CUstream_st* stream) override {
    std::lock_guard lock(mutex_);
    size_t here = 0, there = 0;
    if (!needs(c, there, here) || here > 0 || there > static_cast<size_t>(bytes) ||
        !succeeds(f_.DnSetStream(handle_, stream)))
      return false;
    const cudaDataType type = data_type(c.type);
    return succeeds(c.wanted == Factors::lu
                        ? f_.DnXgetrf(handle_, parameters_, c.n, c.n, type, c.a, c.n, c.pivots, type,
                                      workspace, there, nullptr, 0, c.info)
                        : f_.DnXpotrf(handle_, parameters_, triangle(c.wanted), c.n, type, c.a, c.n, type,
                                      workspace, there, nullptr, 0, c.info));
  }

 private:
  bool needs(const SolverCall& c, size_t& there, size_t& here) const {
    const cudaDataType type = data_type(c.type);
    return succeeds(
        c.wanted == Factors::lu
            ? f_.DnXgetrf_bufferSize(handle_, parameters_, c.n, c.n, type, c.a, c.n, type, &there, &here)
            : f_.DnXpotrf_bufferSize(handle_, parameters_, triangle(c.wanted), c.n, type, c.a, c.n, type,
                                     &there, &here));
  }

  const Functions f_;
  cusolverDnHandle_t handle_ = nullptr;
  cusolverDnParams_t parameters_ = nullptr;
  std::mutex mutex_;
};

}  // namespace

std::unique_ptr<Solver> open_cusolver(SolverProblem& problem, void* library) {
  problem = {};
  if (!library) library = find_cusolver(problem.text);
  if (!library) return nullptr;
  const Functions f(library);
  if (f.missing()) {
    problem.text = "the library has no " + std::string(f.missing());
    return nullptr;
  }
  auto solver = std::make_unique<Cusolver>(f);
  if (!solver->open(problem)) solver.reset();
  return solver;
}

}  // namespace retrograd::cuda

#else

namespace retrograd::inline v0::cuda {

std::unique_ptr<Solver> open_cusolver(SolverProblem& problem, void*) {
  problem.text = "this was built without cusolverDn.h";
  return nullptr;
}

}  // namespace retrograd::cuda

#endif
