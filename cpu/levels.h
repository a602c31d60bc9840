// Instruction-set levels: the level of this machine, and the way to declare and to call functions that are compiled
// once per level.
//
//   baseline  x86-64            avx2    with FMA and BMI2 (x86-64-v3)
//                               avx512  F, BW, CD, DQ and VL (x86-64-v4)
//
// The sources in folders named `levels` are compiled once for each of the three (tools/isa.bzl), into the
// namespace retrograd::cpu::LEVEL. A header in such a folder declares what its source defines, and next to it
// the function that ordinary code calls, which picks the best level:
//
//   RG_EACH_LEVEL(const RandomTable& random_table();)
//   inline const RandomTable& random_table() { RG_RETURN_BEST_LEVEL(random_table()); }
//
// Two more levels exist for products of bfloat16 alone, avx512bf16 and amx: cpu/gemm/levels/gemm_kernels.h.
//
// Invariants: the level is decided by CPU feature flags, never by vendor. It is found by the first call of level()
// and does not change. Code compiled for a level never queries the best one.
#pragma once

#include <cstdint>

namespace retrograd::inline v0::cpu {

enum class Level : uint8_t { baseline, avx2, avx512 };

/// The best level that both the build and this machine have. RETROGRAD_ISA=baseline|avx2|avx512|avx512bf16
/// lowers it, for tests. In a program that was built for one level (RG_ONLY_LEVEL), that one.
Level level();

/// Whether this machine has the instructions of level(): false only for a program that was built for one level.
bool has_level();

/// Whether there are instructions for products of bfloat16 (AVX-512 BF16). RETROGRAD_ISA=avx512 disables them.
bool has_bfloat16();

/// Whether there is also AMX for them, and the system lets the process use its registers. RETROGRAD_ISA=avx512bf16
/// disables it.
bool has_amx();

}  // namespace retrograd::cpu

/// Declares functions for every level. For use in namespace retrograd::cpu, as RG_RETURN_BEST_LEVEL is.
#define RG_EACH_LEVEL(...) \
  namespace baseline {     \
  __VA_ARGS__              \
  }                        \
  namespace avx2 {         \
  __VA_ARGS__              \
  }                        \
  namespace avx512 {       \
  __VA_ARGS__              \
  }

/// The body of a function: returns an expression of the best level. The expression begins with the name of a
/// function that RG_EACH_LEVEL has declared.
#if defined(RG_ONLY_LEVEL)
#define RG_RETURN_BEST_LEVEL(...) return RG_ONLY_LEVEL::__VA_ARGS__
#elif defined(__x86_64__)
#define RG_RETURN_BEST_LEVEL(...)                   \
  switch (level()) {                                \
    case Level::avx512: return avx512::__VA_ARGS__; \
    case Level::avx2: return avx2::__VA_ARGS__;     \
    case Level::baseline: break;                    \
  }                                                 \
  return baseline::__VA_ARGS__
#else
#define RG_RETURN_BEST_LEVEL(...) return baseline::__VA_ARGS__
#endif
