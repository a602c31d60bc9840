// Ranks of few numbers for one instruction-set level: see cpu/kernels/levels/sort_rank.h.
//
// Two registers of numbers are compared with each number in turn; lanes beyond the last number are computed
// and never looked at. Comparisons of registers are signed, so the sign bit of each key is flipped first.
// Only plain loops here: nothing of the standard library, no throw (tools/isa.bzl says why).
#include "cpu/kernels/levels/sort_rank.h"

#include "cpu/vec/vec.h"

namespace retrograd::inline v0::cpu::RG_ISA {

bool rank(const uint64_t* keys, int64_t n, uint64_t* ranks) {
  typedef int64_t Lanes __attribute__((vector_size(kVectorBytes)));
  typedef int64_t Memory __attribute__((vector_size(kVectorBytes), aligned(8), may_alias));
  constexpr int64_t size = kVectorBytes / 8;
  if (size < 4) return false;
  const Lanes sign = Lanes{} + INT64_MIN;  // registers compare signed numbers
  for (int64_t i = 0; i < n; i += 2 * size) {
    const Lanes a = *reinterpret_cast<const Memory*>(keys + i) ^ sign,
                b = *reinterpret_cast<const Memory*>(keys + i + size) ^ sign;
    Lanes below_a{}, below_b{};
    for (int64_t k = 0; k < n; ++k) {
      const Lanes key = (Lanes{} + static_cast<int64_t>(keys[k])) ^ sign;
      below_a -= key < a;
      below_b -= key < b;
    }
    *reinterpret_cast<Memory*>(ranks + i) = below_a;
    *reinterpret_cast<Memory*>(ranks + i + size) = below_b;
  }
  return true;
}

}  // namespace retrograd::cpu::RG_ISA
