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
// Results depend on nothing but sizes and types: it is told to be deterministic. Whether its calls wait for the device is its own affair, so
// they are not recorded in graphs.
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

/// Of the matrices that it was asked for.
struct SolverStats {
  int64_t computed = 0, declined = 0;
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
std::unique_ptr<Solver> open_cusolver(std::string& problem, void* library = nullptr);

}  // namespace retrograd::cuda
