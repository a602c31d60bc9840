// A reduction in plain data: what cuda/kernels/reduce.cc makes of a Call, and what the launchers of cuda/kernels/reduce.cu take.
//
// The dims of the operand are in two groups: those that are kept number the rows, the others the elements of a row. What is found in a row
// is a Partial; `finish` says which number it gives.
#pragma once

#include <cstddef>
#include <cstdint>

struct CUstream_st;

namespace retrograd::cuda {

enum class Element : uint8_t;

enum class Reduction : uint8_t {
  sum,
  abs_sum,
  square_sum,
  power_sum,  // value: sum of x, |x|, x^2, |x|^p
  prod,
  max,
  min,
  abs_max,
  abs_min,    // value: of x or |x|, and index of its first place; the first NaN counts as the extreme
  nonzero,    // value: how many elements are not 0
  moments,    // value: mean; second: sum of squared differences from it
  logsumexp,  // value: maximum m; second: sum of exp(x - m)
};
inline constexpr int kReductions = 12;

/// What was found in `count` elements of a row. V is double for floating operands, int64_t for others.
template <class V>
struct Partial {
  V value, second;
  int64_t index, count;
};

/// Which number a row gives, of its Partial p and its length n.
enum class Finish : uint8_t {
  value,
  mean,         // p.value / n
  index,        // p.index
  variance,     // p.second / max(0, n - parameter)
  deviation,    // its root
  logsumexp,    // p.value + log(p.second)
  root,         // sqrt(p.value)
  power_root,   // p.value ^ (1 / parameter)
  is_positive,  // p.value > 0
  is_length,    // p.value == n
};

/// Some dims of the operand, merged where memory allows; at least one.
struct Dims {
  int64_t numel = 1;
  int rank = 0;
  int64_t size[8] = {}, stride[8] = {};
};

struct ReduceCall {
  const void* x = nullptr;
  Element element{}, out_element{};
  Dims rows, along;
  void* out = nullptr;       // of each row, one behind the other
  int64_t* index = nullptr;  // null, or where p.index goes as well
  Finish finish = Finish::value;
  double parameter = 0;  // of power_sum its p, else of `finish`

  // How it is cut, by sizes alone.
  bool rows_first = false;   // neighbouring threads take neighbouring rows, not neighbouring elements
  int lanes = 32;            // threads of a row
  int splits = 1;            // parts of a row, which blocks of their own reduce
  int64_t part = 0;          // elements of a part
  void* partials = nullptr;  // for a Partial of each part of each row, if splits > 1
};

using ReduceLauncher = void (*)(const ReduceCall&, CUstream_st* stream);

/// By what is computed in.
struct ReduceRow {
  ReduceLauncher f32, f64, i64;
};

}  // namespace retrograd::cuda
