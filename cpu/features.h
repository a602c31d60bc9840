// Which instruction-set level this machine has: decided by CPU feature flags, never by vendor.
#pragma once

#include <cstdint>

namespace retrograd::cpu {

enum class Level : uint8_t { baseline, avx2, avx512 };

/// The best level that both the build and this machine have. RETROGRAD_ISA=baseline|avx2|avx512 lowers it, for
/// tests.
Level level();

/// Whether products of bfloat16 have instructions of their own, AVX-512 BF16. RETROGRAD_ISA=avx512 does without.
bool has_bfloat16();

}  // namespace retrograd::cpu
