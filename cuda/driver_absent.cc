// Replaces driver_cudart.cc in a build without the CUDA toolkit.
#include "cuda/driver.h"

namespace retrograd::inline v0::cuda {

Driver* runtime_driver() { return nullptr; }

std::unique_ptr<Dnn> open_cudnn(std::string& problem, void*) {
  problem = "this was built without the CUDA toolkit";
  return nullptr;
}

std::unique_ptr<Solver> open_cusolver(SolverProblem& problem, void*) {
  problem.text = "this was built without the CUDA toolkit";
  return nullptr;
}

}  // namespace retrograd::cuda
