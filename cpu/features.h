// Which instruction-set level this machine has: decided by CPU feature flags, never by vendor.
#pragma once

#include <cstdint>

namespace retrograd::cpu {

enum class Level : uint8_t { baseline, avx2, avx512 };

/// The best level that both the build and this machine have. RETROGRAD_ISA=baseline|avx2 lowers it, for tests.
Level level();

}  // namespace retrograd::cpu
