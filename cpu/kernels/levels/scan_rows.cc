// Running products for one instruction-set level: see cpu/kernels/levels/scan_rows.h.
//
// Four elements are scanned in a register and then multiplied by what came before: one multiplication and not
// four waits for it. In double no product of four floats is out of range. scan() is instantiated for both
// directions, inclusive and exclusive. Only plain loops here: nothing of the standard library, no throw
// (tools/isa.bzl says why).
#include "cpu/kernels/levels/scan_rows.h"

namespace retrograd::inline v0::cpu::RG_ISA {
namespace {

constexpr int64_t kFour = 4;
typedef float Floats __attribute__((vector_size(16)));
typedef float InMemory __attribute__((vector_size(16), aligned(4), may_alias));
typedef int32_t FloatOrder __attribute__((vector_size(16)));
typedef double Doubles __attribute__((vector_size(32)));
typedef int64_t Order __attribute__((vector_size(32)));

template <bool reverse, bool exclusive>
void scan(const float* x, float* y, int64_t n, double start) {
  const Doubles one = {1, 1, 1, 1};
  const FloatOrder backwards = {3, 2, 1, 0};
  Doubles before = {start, start, start, start};
  const auto step = [&](const float* from, float* to) __attribute__((always_inline)) {
    const Floats in = *reinterpret_cast<const InMemory*>(from);
    Doubles p = __builtin_convertvector(reverse ? __builtin_shuffle(in, backwards) : in, Doubles);
    p *= __builtin_shuffle(p, one, Order{4, 0, 1, 2});
    p *= __builtin_shuffle(p, one, Order{4, 4, 0, 1});
    const Doubles y = before * (exclusive ? __builtin_shuffle(p, one, Order{4, 0, 1, 2}) : p);
    const Floats out = __builtin_convertvector(y, Floats);
    *reinterpret_cast<InMemory*>(to) = reverse ? __builtin_shuffle(out, backwards) : out;
    before *= __builtin_shuffle(p, Order{3, 3, 3, 3});
  };
  for (int64_t i = 0; i + kFour <= n; i += kFour) {
    const int64_t at = reverse ? n - kFour - i : i;
    step(x + at, y + at);
  }
  const int64_t rest = n % kFour;
  if (rest == 0) return;
  const int64_t at = reverse ? 0 : n - rest, first = reverse ? kFour - rest : 0;
  float in[kFour] = {1, 1, 1, 1}, out[kFour];
  for (int64_t k = 0; k < rest; ++k) in[first + k] = x[at + k];
  step(in, out);
  for (int64_t k = 0; k < rest; ++k) y[at + k] = out[first + k];
}

}  // namespace

void scan_products(const float* x, float* y, int64_t n, ScanWay way) {
  if (way.reverse)
    way.exclusive ? scan<true, true>(x, y, n, way.before) : scan<true, false>(x, y, n, way.before);
  else
    way.exclusive ? scan<false, true>(x, y, n, way.before) : scan<false, false>(x, y, n, way.before);
}

}  // namespace retrograd::cpu::RG_ISA
