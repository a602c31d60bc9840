// Draws in plain data: made by cuda/kernels/random.cc from a Call, used by the launchers of cuda/kernels/random.cu.
//
// Elements are numbered in row-major order for any strides; element i takes its number from position i of the draw's
// Philox stream (engine/philox.h), as on the CPU.
#pragma once

#include "cuda/fault.h"
#include "cuda/kernels/given.h"
#include "cuda/kernels/rows_call.h"

namespace retrograd::inline v0::cuda {

enum class Distribution : uint8_t {
  uniform,      // a + (b - a) u
  normal,       // a + b z, where a and b may be tensors
  exponential,  // -log(1 - u) / a
  bernoulli,    // u < a, where a may be a tensor
  integers,     // low + floor(range * bits / 2^64)
  dropout,      // x or 0, x given as the tensor a; a number b its scale
  rounding,     // x rounded to bfloat16, given as the tensor a
};
inline constexpr int kDistributions = 7;

struct DrawNumbers {
  uint64_t seed = 0, offset = 0;
  double a = 0, b = 0;
  uint64_t low = 0, range = 0;               // of integers
  uint32_t chance_high = 0, chance_low = 0;  // the probability of being dropped
};

struct RandomCall {
  Given<DrawNumbers> numbers;
  RowSide out;             // one row
  RowSide a_side, b_side;  // the same, broadcast to the result; without data the number is used
  FaultNote note;          // for probabilities and deviations in tensors
};
using RandomLauncher = void (*)(const RandomCall&, CUstream_st* stream);

struct RandomLaunchers {
  RandomLauncher draw[kDistributions];
};

}  // namespace retrograd::cuda
