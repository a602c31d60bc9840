// An op on the device of tests (tests/cuda/device_on_host.h) against the CPU: the same operands in the same
// layouts, all results compared.
#pragma once

#include <random>

#include "tests/cuda/device_on_host.h"

namespace retrograd {

/// Numbers from -2 to 2, integers from 0 to 3; with `special` also some NaN and infinities.
inline Tensor random_numbers(const IntArray& size, ScalarType dtype, bool special = false) {
  static std::mt19937 random_bits(5);
  int64_t n = 1;
  for (int64_t s : size) n *= s;
  std::vector<double> values(static_cast<size_t>(n));
  for (double& v : values) {
    v = std::uniform_real_distribution<double>(-2, 2)(random_bits);
    if (is_integral(dtype, true)) v = static_cast<double>(random_bits() % 4);
    if (special && random_bits() % 40 == 0)
      v = random_bits() % 2 ? INFINITY : random_bits() % 2 ? -INFINITY : NAN;
  }
  return tensor(values, size, dtype);
}

/// The generator of unit_numbers(); to be seeded to get the same numbers again.
inline std::mt19937 unit_bits(9);

/// Numbers from -1 to 1, integers from 0 to 8: sums of products of them stay small.
inline Tensor unit_numbers(const IntArray& size, ScalarType dtype) {
  int64_t n = 1;
  for (int64_t s : size) n *= s;
  std::vector<double> values(static_cast<size_t>(n));
  for (double& v : values)
    v = is_integral(dtype, true) ? static_cast<double>(unit_bits() % 9)
                                 : std::uniform_real_distribution<double>(-1, 1)(unit_bits);
  return tensor(values, size, dtype);
}

/// An op of one result on the device and on the CPU; `attrs` are its own. `scale`: of expect_same().
inline void expect_like_cpu(const OpInfo& op, const Tensors& operands, void* attrs, double scale) {
  NoGradGuard no_grad;
  INFO(op.name);
  Tensors there;
  for (const Tensor& x : operands) there.push_back(with_layout_on_device(x));
  expect_same(emit(op, operands, attrs), emit(op, there, attrs), scale);
}

template <class Op>
Tensors results_of(const Tensors& operands, typename Op::Attrs attrs, int outputs) {
  NoGradGuard no_grad;
  std::vector<TensorImpl*> cells;
  for (const Tensor& x : operands) cells.push_back(x.get());
  Tensors results(static_cast<size_t>(outputs));
  eager_runner().emit({&ops::info<Op>, cells, &attrs, {}, outputs}, results.data());
  return results;
}

/// The results on the CPU.
template <class Op>
Tensors against_cpu(const Tensors& operands, typename Op::Attrs attrs, int outputs = 1, double scale = 4) {
  Tensors on_device;
  for (const Tensor& x : operands) on_device.push_back(with_layout_on_device(x));
  const Tensors expected = results_of<Op>(operands, attrs, outputs),
                found = results_of<Op>(on_device, attrs, outputs);
  for (size_t i = 0; i < expected.size(); ++i) {
    INFO("result " << i << " of " << Op::name << " of " << to_string(expected[0].impl().shape()) << " "
                   << name(expected[0].dtype()));
    expect_same(expected[i], found[i], scale);
  }
  return expected;
}

}  // namespace retrograd
