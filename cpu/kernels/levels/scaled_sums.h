// Sums of squares and powers of elements so large or so small that the sums leave the range of T: the
// elements are scaled by a power of 2 first.
//
// A kernel sums as usual, asks is_in_range() and comes here for the rare row that is not: one element at a
// time, in double. ScaledSums is for ordinary code too, which merges what chunks of a row have found; the
// functions are for sources that are compiled once per instruction-set level (cpu/vec/vec.h).
#pragma once

#include <cstdint>

namespace retrograd::inline v0::cpu {

/// A sum of positive terms, made in lanes of T, has lost nothing to the ends of the range if it is within these. Not
/// so sums of 0, of infinities and of NaN.
template <class T>
inline constexpr double kLeastSum = sizeof(T) == 4 ? 0x1p-90 : 0x1p-900;
template <class T>
inline constexpr double kMostSum = sizeof(T) == 4 ? 0x1p200 : 0x1p1000;

/// Of n elements, from one to the next `stride`, divided by 2^exponent.
struct ScaledSums {
  double sum = 0, squares = 0;  // of x - shift
  double powers = 0;            // of |x - shift|^p, if asked for
  int64_t exponent = 0;
  bool is_of_use = false;  // there are elements other than 0, and all are finite
};

#ifdef RG_ISA
namespace RG_ISA {

template <class T>
bool is_in_range(double sum) {
  return sum >= kLeastSum<T> && sum <= kMostSum<T>;
}

/// p = 0 asks for sums and squares, any other p for the powers.
template <class T>
ScaledSums scaled_sums(const T* x, int64_t stride, int64_t n, double shift, double p) {
  ScaledSums found;
  double unit = 0;  // the largest difference, for negative powers the smallest
  for (int64_t i = 0; i < n; ++i) {
    const double size = __builtin_fabs(static_cast<double>(x[i * stride]) - shift);
    if (!(size - size == 0)) return found;
    if (i == 0 || (p < 0 ? size < unit : size > unit)) unit = size;
  }
  if (unit == 0) return found;
  const int exponent = __builtin_ilogb(unit);
  found.is_of_use = true;
  found.exponent = exponent;
  for (int64_t i = 0; i < n; ++i) {
    const double d = __builtin_scalbn(static_cast<double>(x[i * stride]) - shift, -exponent);
    if (p != 0) {
      found.powers += p == 2 ? d * d : __builtin_pow(__builtin_fabs(d), p);
    } else {
      found.sum += d;
      found.squares += d * d;
    }
  }
  return found;
}

}  // namespace RG_ISA
#endif

}  // namespace retrograd::cpu
