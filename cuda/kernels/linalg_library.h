// Factorisations of cuda/kernels/linalg_run.cc by the vendor's library (cuda/solver.h).
#pragma once

#include <span>

#include "cuda/kernels/linalg_run.h"

namespace retrograd::inline v0::cuda {

/// Whether the library is available and to be used for `count` matrices of order n.
bool asks_library(Gpu& gpu, int64_t n, int64_t count);

/// Launch the factorisation, or return false: the library is missing, not to be used, declines or fails. See LinalgRun.
/// OutOfMemory.
bool factor_lu_by_library(const LinalgRun& run, const BatchMatrix& from, void* lu, int32_t* permutation);
bool factor_cholesky_by_library(const LinalgRun& run, const BatchMatrix& from, void* to, bool upper,
                                int32_t* info);

}  // namespace retrograd::cuda
