// int64_t as the element type V of a kernel formula: integer and bool tensors are computed in it, on all devices.
// Arithmetic wraps around (two's complement), like PyTorch's. The functions are those of cpu/vec/vec_math.h that make
// sense for integers.
//
// In kernels of the CPU the names are in the namespace of the instruction-set level, so that the linker does not merge
// code of different levels; on a device they are in the namespace of the scalar functions.
#pragma once

#include <cstdint>

#include "ops/host_device.h"

#ifdef RG_ISA
namespace retrograd::inline v0::cpu::RG_ISA {
#else
namespace retrograd::inline v0::scalar {
#endif

/// A 64-bit integer with wrap-around arithmetic; comparisons give bool.
struct Int {
  int64_t v;
  Int() = default;
  RG_HD Int(int64_t value) : v(value) {}
  RG_HD Int(int value) : v(value) {}
  RG_HD Int(double value) : v(static_cast<int64_t>(value)) {}
  RG_HD static Int wrap(uint64_t u) { return Int(static_cast<int64_t>(u)); }
  RG_HD uint64_t u() const { return static_cast<uint64_t>(v); }

  RG_HD friend Int operator+(Int a, Int b) { return wrap(a.u() + b.u()); }
  RG_HD friend Int operator-(Int a, Int b) { return wrap(a.u() - b.u()); }
  RG_HD friend Int operator*(Int a, Int b) { return wrap(a.u() * b.u()); }
  RG_HD friend Int operator-(Int a) { return wrap(0 - a.u()); }
  RG_HD friend bool operator==(Int a, Int b) { return a.v == b.v; }
  RG_HD friend bool operator!=(Int a, Int b) { return a.v != b.v; }
  RG_HD friend bool operator<(Int a, Int b) { return a.v < b.v; }
  RG_HD friend bool operator<=(Int a, Int b) { return a.v <= b.v; }
  RG_HD friend bool operator>(Int a, Int b) { return a.v > b.v; }
  RG_HD friend bool operator>=(Int a, Int b) { return a.v >= b.v; }
};

RG_HD inline Int select(bool mask, Int a, Int b) { return mask ? a : b; }
RG_HD inline Int abs(Int a) { return a.v < 0 ? -a : a; }
RG_HD inline Int maximum(Int a, Int b) { return a.v < b.v ? b : a; }
RG_HD inline Int minimum(Int a, Int b) { return b.v < a.v ? b : a; }
RG_HD inline Int clamp(Int x, Int low, Int high) { return maximum(low, minimum(high, x)); }
RG_HD inline bool isnan(Int) { return false; }
RG_HD inline bool isinf(Int) { return false; }
RG_HD inline bool isfinite(Int) { return true; }
RG_HD inline Int nearbyint(Int x) { return x; }
RG_HD inline Int floor(Int x) { return x; }
RG_HD inline Int ceil(Int x) { return x; }
RG_HD inline Int trunc(Int x) { return x; }

/// a / b toward zero. Division by 0 gives 0 (kernels cannot throw: cpu/kernels/elementwise_table.cc refuses such
/// operands first).
RG_HD inline Int trunc_divide(Int a, Int b) {
  if (b.v == 0) return 0;
  return b.v == -1 ? -a : Int(a.v / b.v);
}
RG_HD inline Int fmod(Int a, Int b) { return a - trunc_divide(a, b) * b; }
/// a / b toward minus infinity, and the remainder, which has the sign of b.
RG_HD inline Int floor_divide(Int a, Int b) {
  const Int q = trunc_divide(a, b);
  return q * b != a && (a.v < 0) != (b.v < 0) ? q - 1 : q;
}
RG_HD inline Int remainder(Int a, Int b) { return a - floor_divide(a, b) * b; }

/// a^b; for a negative b, the integer part: 0 unless a is 1 or -1.
RG_HD inline Int pow(Int a, Int b) {
  if (b.v < 0) return a.v == 1 ? 1 : a.v == -1 ? (b.v % 2 ? -1 : 1) : 0;
  Int result = 1;
  for (uint64_t n = b.u(); n; n >>= 1, a = a * a)
    if (n & 1) result = result * a;
  return result;
}

}  // namespace
