// A reduction in plain data: made by cuda/kernels/reduce.cc from a Call, used by the launchers of
// cuda/kernels/reduce.cu.
//
// The dims of the operand form two groups: the kept ones number the rows, the others the elements of a row. The
// intermediate result of a row is a Partial; `finish` determines the row's number from it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/reductions.h"

struct CUstream_st;

namespace retrograd::inline v0::cuda {

enum class Element : uint8_t;

using ops::Partial;
using ops::Reduction;
/// The reductions that have kernels are the first ones. The others use these kernels with Finish::index.
inline constexpr int kReductions = 12;
static_assert(static_cast<int>(Reduction::argmax) == kReductions);

/// The number of a row, from its Partial p and its length n.
enum class Finish : uint8_t {
  value,
  mean,         // p.value / n
  index,        // p.index
  variance,     // ops::variance_of(p, n, parameter)
  deviation,    // its root
  logsumexp,    // ops::log_sum_exp_of(p)
  root,         // sqrt(p.value)
  power_root,   // p.value ^ (1 / parameter)
  is_positive,  // p.value > 0
  is_length,    // p.value == n
};

/// Some dims of the operand, merged if memory allows; at least one.
struct Dims {
  int64_t numel = 1;
  int rank = 0;
  int64_t size[8] = {}, stride[8] = {};
};

struct ReduceCall {
  const void* x = nullptr;
  Element element{}, out_element{};
  Dims rows, along;
  void* out = nullptr;       // of each row, contiguous
  int64_t* index = nullptr;  // null, or where p.index is written as well
  Finish finish = Finish::value;
  double parameter = 0;  // p of power_sum, else the parameter of `finish`

  // How it is divided, by sizes only.
  bool rows_first = false;   // neighbouring threads take neighbouring rows, not neighbouring elements
  int lanes = 32;            // threads of a row
  int splits = 1;            // parts of a row, reduced by separate blocks
  int64_t part = 0;          // elements of a part
  void* partials = nullptr;  // for a Partial of each part of each row, if splits > 1
};

using ReduceLauncher = void (*)(const ReduceCall&, CUstream_st* stream);

/// By compute type.
struct ReduceRow {
  ReduceLauncher f32, f64, i64;
};

}  // namespace retrograd::cuda
