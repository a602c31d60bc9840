// Finds the instruction-set level of this machine: see cpu/levels.h.
//
// level() takes the best of the three that the CPU's feature flags allow, has_bfloat16() and has_amx() say
// which of the two further levels exist. RETROGRAD_ISA is read once; it only lowers what the flags allow, and
// an unknown name is reported on stderr and ignored. Each answer is a function-local static: found by the
// first call, from any thread.
#include "cpu/levels.h"

#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace retrograd::inline v0::cpu {
namespace {

// The level that RETROGRAD_ISA names; empty: none. An unknown name is reported once and ignored.
std::string_view wanted_level() {
  static const std::string_view wanted = [] {
    const char* const text = secure_getenv("RETROGRAD_ISA");
    const std::string_view name = text ? text : "";
    for (const std::string_view known : {"", "baseline", "avx2", "avx512", "avx512bf16"})
      if (name == known) return name;
    std::fprintf(stderr, "RETROGRAD_ISA: there is no level '%s'. Known are: baseline avx2 avx512 avx512bf16\n",
                 text);
    return std::string_view();
  }();
  return wanted;
}

// What the CPU's feature flags allow.
Level best_level() {
  Level best = Level::baseline;
#if defined(__x86_64__)
  const bool avx2 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl");
  best = avx512 ? Level::avx512 : avx2 ? Level::avx2 : Level::baseline;
#endif
  return best;
}

Level detect() {
#if defined(RG_ONLY_LEVEL)
  if (!wanted_level().empty())
    std::fputs("RETROGRAD_ISA: this program has one level alone; --//tools:levels=all builds all\n", stderr);
  return Level::RG_ONLY_LEVEL;
#else
  const Level best = best_level();
  const std::string_view wanted = wanted_level();
  if (wanted == "baseline") return Level::baseline;
  if (wanted == "avx2" && best > Level::avx2) return Level::avx2;
  return best;
#endif
}

// The system denies the registers of AMX, 8 KB per thread, to a process that has not requested them (Linux 5.16 and
// later).
[[maybe_unused]] bool ask_for_tiles() {
#if defined(__x86_64__) && defined(__linux__)
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

}  // namespace

Level level() {
  static const Level found = detect();
  return found;
}

bool has_level() { return best_level() >= level(); }

bool has_bfloat16() {
#if defined(__x86_64__)
  static const bool found =
      level() == Level::avx512 && __builtin_cpu_supports("avx512bf16") && wanted_level() != "avx512";
  return found;
#else
  return false;
#endif
}

bool has_amx() {
#if defined(__x86_64__)
  static const bool found = has_bfloat16() && __builtin_cpu_supports("amx-tile") &&
                            __builtin_cpu_supports("amx-bf16") && wanted_level() != "avx512bf16" &&
                            ask_for_tiles();
  return found;
#else
  return false;
#endif
}

}  // namespace retrograd::cpu
