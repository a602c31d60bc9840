// Solver: factorisations of matrices by the vendor's library, as a class that either computes one or declines it.
//
// A matrix is dense, of order n, and column-major: element (i, j) is at a[i + j * n]. The caller has row-major matrices
// and adapts the factorisation (cuda/kernels/linalg_library.cc). Factorisations are in place, one matrix at a time: the
// library has batches only for small matrices, which retrograd's own kernels compute as well.
//
// The library is cuSOLVER (cuda/solver_cusolver.cc). It is opened when a program factors a large matrix for the first
// time and is not linked. If it is missing, retrograd's own kernels replace it. They also compute what it declines, so
// `false` is no error. Tests use a stand-in here.
//
// Whether it declines depends only on sizes and types, and so do the bits of results: functions that are not
// deterministic, according to the documentation, are not used. But it may fail: its handle allocates device memory
// outside of our allocator. Then unused memory is returned to the driver and the call is tried again. If that fails,
// too, retrograd's own kernels compute this call, with other bits: SolverStats::failed counts such matrices. Its
// workspace comes from our allocator like any other memory: if there is none, the call is OutOfMemory, and no other
// kernel replaces it. Its calls may wait for the device, so they are not recorded in graphs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

struct CUstream_st;

namespace retrograd::inline v0::cuda {

enum class SolverType : uint8_t { f32, f64 };
/// P A = L U; A = L L' from the lower triangle; A = U' U from the upper one. The last two do not change the other
/// triangle.
enum class Factors : uint8_t { lu, lower, upper };

struct SolverCall {
  Factors wanted{};
  SolverType type{};
  int64_t n = 0;
  void* a = nullptr;
  int64_t* pivots = nullptr;  // for lu: row k was exchanged with row pivots[k] - 1, for k = 0, 1, ...
  int32_t* info = nullptr;    // not 0: a pivot is zero, or the matrix is not positive definite
};

/// When a device's Solver is used: RETROGRAD_CUDA_SOLVER=0, 1 (or not set), all; Gpu::use_solver().
enum class SolverUse : uint8_t { never, where_it_wins, wherever_it_can };

/// The outcome for the requested matrices.
enum class SolverOutcome : uint8_t { computed, declined, failed };
struct SolverStats {
  int64_t computed = 0, declined = 0, failed = 0;
};

/// Why there is no Solver.
struct SolverProblem {
  std::string text;
  bool may_pass = false;  // it exists but could not be initialised, perhaps for lack of memory
};

class Solver {
 public:
  virtual ~Solver() = default;
  /// Includes its version.
  virtual std::string name() const = 0;
  /// The bytes of device memory that it needs; none when it declines. Does not depend on addresses. n is not 0.
  virtual std::optional<int64_t> workspace(const SolverCall& c) = 0;
  /// Puts the factorisation on the stream, or returns false: then `a` may be overwritten. Calls from several threads
  /// are serialised.
  virtual bool factor(const SolverCall& c, void* workspace, int64_t bytes, CUstream_st* stream) = 0;
};

/// cuSOLVER for this thread's device; null when it cannot be used: then `problem` says why. `library`: a handle of
/// dlopen(); null: the machine's.
std::unique_ptr<Solver> open_cusolver(SolverProblem& problem, void* library = nullptr);

}  // namespace retrograd::cuda
