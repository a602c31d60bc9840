// Solver: factorisations of matrices by the vendor's library, as a class that either computes one or declines it.
//
// A matrix is dense, of order n, and read by columns: element (i, j) is at a[i + j * n]. Who asks has rows; what that makes of a
// factorisation is settled there (cuda/kernels/linalg_library.cc). Work is done in place, a matrix at a time: the library has batches of
// small matrices alone, which the library's own kernels compute as well.
//
// The library is cuSOLVER (cuda/solver_cusolver.cc), which is opened when a program factors a large matrix for the first time and is not
// linked. Where it is absent the library's own kernels take its place. What it declines goes to them as well, so a false is no error. Tests
// put a stand-in here.
//
// What it declines depends on sizes and types alone, and so do the bits of results: of its functions that may give other bits each time, by
// its documentation, none is used. But it may fail: its handle takes memory of the device that is not our allocator's. Then unused memory is
// given back and it is tried once more, and if that fails the library's own kernels compute this call, with other bits: SolverStats::failed
// counts such matrices. Memory that we take for its work is asked for as any other: where there is none the call is OutOfMemory, and no other
// kernel takes its place. Whether its calls wait for the device is its own affair, so they are not recorded in graphs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

struct CUstream_st;

namespace retrograd::cuda {

enum class SolverType : uint8_t { f32, f64 };
/// P A = L U; A = L L' from the lower triangle; A = U' U from the upper one. Of the last two the other triangle is not touched.
enum class Factors : uint8_t { lu, lower, upper };

struct SolverCall {
  Factors wanted{};
  SolverType type{};
  int64_t n = 0;
  void* a = nullptr;
  int64_t* pivots = nullptr;  // of lu: row k was exchanged with row pivots[k] - 1, for k = 0, 1, ...
  int32_t* info = nullptr;    // not 0: a pivot is zero, or the matrix is not positive definite
};

/// When a device's Solver is asked: RETROGRAD_CUDA_SOLVER=0, 1 (or not set), all; Gpu::use_solver().
enum class SolverUse : uint8_t { never, where_it_wins, wherever_it_can };

/// What became of the matrices that it was asked for.
enum class SolverOutcome : uint8_t { computed, declined, failed };
struct SolverStats {
  int64_t computed = 0, declined = 0, failed = 0;
};

/// Why there is no Solver.
struct SolverProblem {
  std::string text;
  bool may_pass = false;  // it is there but could not begin, perhaps for want of memory
};

class Solver {
 public:
  virtual ~Solver() = default;
  /// With its version.
  virtual std::string name() const = 0;
  /// The bytes of the device's memory that it needs; nothing where it declines. Addresses are not looked at. n is not 0.
  virtual std::optional<int64_t> workspace(const SolverCall& c) = 0;
  /// Puts the factorisation on the stream, or returns false: then `a` may be spoilt. Calls of several threads are put on the stream one
  /// after the other.
  virtual bool factor(const SolverCall& c, void* workspace, int64_t bytes, CUstream_st* stream) = 0;
};

/// cuSOLVER for the device that is this thread's; null where it cannot be used: `problem` then says why. `library`: as dlopen() gives it;
/// null: the machine's.
std::unique_ptr<Solver> open_cusolver(SolverProblem& problem, void* library = nullptr);

}  // namespace retrograd::cuda
