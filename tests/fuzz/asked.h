// Settings of the fuzzers in the environment.
#pragma once

#include <cstdint>
#include <cstdlib>

#include "tests/fuzz/random.h"

namespace fuzz {

/// The number in this variable, or a default.
inline int64_t asked_for(const char* variable, int64_t otherwise) {
  const char* text = std::getenv(variable);
  return text ? static_cast<int64_t>(std::strtoull(text, nullptr, 10)) : otherwise;
}
inline uint64_t asked_seed() { return static_cast<uint64_t>(asked_for("RETROGRAD_FUZZ_SEED", 1)); }

}  // namespace fuzz
