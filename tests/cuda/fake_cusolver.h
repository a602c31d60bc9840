// cuSOLVER's functions of factorisations, for tests without a device: those of cuda/solver_cusolver.cc. A matrix is
// factored on the host by the simplest method, as LAPACK defines it, provided that cuSOLVER's own checks of the
// arguments pass and all memory is on the right side.
//
// A program with fake_cusolver.cc exports them (-rdynamic): dlopen(nullptr) is the library. Only if cusolverDn.h is
// available.
#pragma once

// Exported although everything else is hidden.
#pragma GCC visibility push(default)
#include <cusolverDn.h>
#pragma GCC visibility pop

namespace retrograd::fake_cusolver {

struct World {
  int live = 0;                   // handles and parameters
  int factored = 0, asked = 0;    // matrices; questions about workspace
  int fails_after = -1;           // so many matrices; -1: never
  bool fails_once = false;        // and not again
  bool declines = false;          // at the question
  size_t handle_bytes = 0;        // of the device's memory that a handle takes
  size_t host_bytes = 0;          // of workspace there
  cublasFillMode_t triangle{};    // of the last Cholesky factor
  cudaDataType type{};            // of the last matrix
  cudaStream_t stream = nullptr;  // of the last one
};
inline World world;

inline constexpr size_t kBytes = 128;  // of workspace on the device

}  // namespace retrograd::fake_cusolver
