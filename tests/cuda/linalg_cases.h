// Matrices of linear algebra to be compared with the CPU, and errors of such calls.
#pragma once

#include "ops/linalg.h"
#include "ops/rearrange.h"
#include "tests/cuda/against_cpu.h"
#include "tests/errors.h"

namespace retrograd {

struct Batch {
  IntArray size;
  int64_t n;
};

// Sizes round tiles of 32 rows and panels of 16 columns; 72 and more do not fit shared memory in float64, 102 and more
// in float32.
inline const std::vector<Batch> kBatches = {
    {{}, 1},     {{}, 2},  {{3}, 5}, {{}, 16}, {{2}, 17}, {{2, 3}, 4}, {{}, 33},     {{2}, 40},
    {{3, 0}, 4}, {{2}, 0}, {{0}, 0}, {{}, 70}, {{}, 90},  {{}, 110},   {{1, 2}, 31}, {{}, 64}};

inline IntArray matrices(const Batch& b, int64_t columns = -1) {
  IntArray size = b.size;
  size.push_back(b.n);
  size.push_back(columns < 0 ? b.n : columns);
  return size;
}

// With a diagonal that keeps the digits, in an order that needs exchanges of rows.
inline Tensor regular(const Batch& b, ScalarType dtype) {
  const Tensor x = unit_numbers(matrices(b), dtype);
  return b.n == 0 ? x
                  : roll(x + eye(b.n, {}, {dtype}) * (4.0 + static_cast<double>(b.n) / 8), {b.n / 2}, {-2});
}

inline Tensor positive(const Batch& b, ScalarType dtype) {
  const Tensor x = unit_numbers(matrices(b), dtype);
  return matmul(x, x.transpose(-2, -1)) + eye(b.n, {}, {dtype}) * static_cast<double>(b.n + 1);
}

// Columns are neighbours in memory.
inline Tensor in_columns(const Tensor& x) { return clone(x.transpose(-2, -1)).transpose(-2, -1); }

/// The code that factors matrices on the device of the tests: on the host retrograd's own kernels, on a machine's
/// device these, and cuSOLVER if available.
inline std::vector<cuda::SolverUse> solver_uses() {
  using enum cuda::SolverUse;
  return is_on_host() ? std::vector{where_it_wins} : std::vector{never, wherever_it_can};
}

template <class F>
void for_all(const F& f) {
  device_on_host();
  for (cuda::SolverUse use : solver_uses()) {
    cuda::gpu_of(0).use_solver(use);
    for (ScalarType dtype : {kFloat32, kFloat64})
      for (const Batch& b : kBatches) {
        INFO(to_string(Shape(matrices(b))) << " " << name(dtype));
        f(b, dtype);
      }
  }
  cuda::gpu_of(0).use_solver(cuda::SolverUse::where_it_wins);
}

struct Factored {
  Tensor a, lu, p;
};
inline Factored factor(const Tensor& a) {
  const Tensors f = results_of<ops::LuFactor>({a}, {}, 2);
  return {a, f[0], f[1]};
}

// Errors grow with the sums.
inline double scale_of(const Batch& b) { return 20 + static_cast<double>(b.n) * 4; }

struct Failure {
  Category category;
  std::string text;
};
template <class F>
Failure failure_of(const F& f) {
  try {
    f();
  } catch (const Error& e) {
    return {e.category(), e.what()};
  }
  FAIL("no error");
  return {};
}

// The op on the device fails when it is waited for, with the category and the words of the CPU.
template <class F>
void expect_failure(const Tensors& operands, const std::string& words, const F& f) {
  Tensors there;
  for (const Tensor& x : operands) there.push_back(x.to(kCUDA));
  const Failure expected = failure_of([&] { f(operands); }), found = failure_of([&] {
                                                               f(there);
                                                               cuda::gpu_of(0).synchronize();
                                                             });
  CHECK(expected.text.find(words) != std::string::npos);
  CHECK(found.text.find(words) != std::string::npos);
  CHECK(found.category == expected.category);
  CHECK_NOTHROW(cuda::gpu_of(0).synchronize());  // reported once
}

}  // namespace retrograd
