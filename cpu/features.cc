// See cpu/features.h.
#include "cpu/features.h"

#include <cstdlib>
#include <string_view>

namespace retrograd::cpu {
namespace {

Level detect() {
  Level best = Level::baseline;
#if defined(__x86_64__)
  const bool avx2 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl");
  best = avx512 ? Level::avx512 : avx2 ? Level::avx2 : Level::baseline;
#endif
  const char* text = std::getenv("RETROGRAD_ISA");
  const std::string_view wanted = text ? text : "";
  if (wanted == "baseline") return Level::baseline;
  if (wanted == "avx2" && best > Level::avx2) return Level::avx2;
  return best;
}

}  // namespace

Level level() {
  static const Level found = detect();
  return found;
}

}  // namespace retrograd::cpu
