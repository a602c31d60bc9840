// Packing of bfloat16 in pairs, for the sources of the two levels that multiply such pairs,
// cpu/gemm/avx512bf16 and cpu/gemm/amx: see cpu/gemm/levels/gemm_kernels.h.
//
// Two steps of k become one packed element, low half first; an odd last step has a zero next to it. Both
// instruction sets read the same column panels, of kColumns columns; row panels of A are packed as column
// panels are, except for AMX, which has its own. Start reading at pack().
#pragma once

#include "cpu/gemm/levels/gemm_pack.h"
#include "engine/float_formats.h"

namespace retrograd::inline v0::cpu::RG_ISA {
namespace {

constexpr int kColumns = kVectors * kLanes<BFloat16>;

[[gnu::always_inline]] inline uint32_t pair(BFloat16 low, BFloat16 high) {
  return low.bits | static_cast<uint32_t>(high.bits) << 16;
}

// Rows of `count` neighbours across a panel, one for each element of k, become one row for two.
template <int Width>
void pack_across(const BFloat16* x, int64_t along, int64_t count, int64_t pairs, uint32_t* out) {
  constexpr int L = kLanes<BFloat16>;
  for (int64_t l = 0; l < pairs; ++l, x += 2 * along, out += Width)
#pragma GCC unroll 2
    for (int i = 0; i < Width; i += L) {
      const __mmask16 some = native_part_16(count < i ? 0 : count - i);
      const __m256i low = _mm256_maskz_loadu_epi16(some, x + i),
                    high = _mm256_maskz_loadu_epi16(some, x + along + i);
      _mm512_mask_storeu_epi32(out + i, native_part_16(Width - i), join(low, high));
    }
}

int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

// One panel.
void pack_pairs(const BFloat16* x, int64_t across, int64_t along, int64_t count, int width, int64_t pairs,
                uint32_t* out) {
  const char* const bytes = reinterpret_cast<const char*>(x);
  if (along == 1)
    return width == kRows ? pack_along<uint32_t, kRows>(bytes, 2 * across, count, pairs, out)
                          : pack_along<uint32_t, kColumns>(bytes, 2 * across, count, pairs, out);
  if (across == 1)
    return width == kRows ? pack_across<kRows>(x, along, count, pairs, out)
                          : pack_across<kColumns>(x, along, count, pairs, out);
  for (int64_t l = 0; l < pairs; ++l, out += width) {
    const BFloat16 *low = x + 2 * l * along, *high = low + along;
    for (int64_t i = 0; i < count; ++i) out[i] = pair(low[i * across], high[i * across]);
    for (int64_t i = count; i < width; ++i) out[i] = 0;
  }
}

void pack(const BFloat16* x, int64_t across, int64_t along, int64_t count, int width, int64_t k,
          uint32_t* out, int64_t panel) {
  const int64_t pairs = k / 2, steps = across == 1 ? kStepsAtOnce : pairs;
  const auto for_panels = [&](auto f) {
    for (int64_t i = 0; i < count; i += width)
      f(x + i * across, least(width, count - i), out + i / width * panel);
  };
  for (int64_t l = 0; l < pairs; l += steps)
    for_panels([&](const BFloat16* from, int64_t some, uint32_t* to) {
      pack_pairs(from + 2 * l * along, across, along, some, width, least(steps, pairs - l), to + l * width);
    });
  if (k % 2 == 0) return;
  for_panels([&](const BFloat16* from, int64_t some, uint32_t* to) {
    from += 2 * pairs * along;
    to += pairs * width;
    for (int64_t i = 0; i < width; ++i) to[i] = i < some ? from[i * across].bits : 0;
  });
}

}  // namespace
}  // namespace retrograd::cpu::RG_ISA
