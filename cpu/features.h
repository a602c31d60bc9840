// Which instruction-set level this machine has: decided by CPU feature flags, never by vendor.
//
//   baseline  x86-64            avx2    with FMA and BMI2 (x86-64-v3)
//                               avx512  F, BW, CD, DQ and VL (x86-64-v4)
// Kernel files are compiled once for each (tools/isa.bzl). The answer is found at the first question and does
// not change.
#pragma once

#include <cstdint>

namespace retrograd::cpu {

enum class Level : uint8_t { baseline, avx2, avx512 };

/// The best level that both the build and this machine have. RETROGRAD_ISA=baseline|avx2|avx512|avx512bf16 lowers it, for
/// tests.
Level level();

/// Whether products of bfloat16 have instructions of their own, AVX-512 BF16. RETROGRAD_ISA=avx512 does without.
bool has_bfloat16();

/// Whether there is AMX for them beside it, and the system lets the process use its registers. RETROGRAD_ISA=avx512bf16
/// does without.
bool has_amx();

}  // namespace retrograd::cpu
