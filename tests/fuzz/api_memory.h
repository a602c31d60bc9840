// MemoryLimit: while one lives, tensor data may grow by 32 MiB. Huge sizes then cost nothing: they are OutOfMemory.
#pragma once

#include "retrograd/retrograd.h"

namespace fuzz {

struct MemoryLimit {
  MemoryLimit() { retrograd::memory::set_limit(retrograd::memory::stats().live_bytes + (int64_t{32} << 20)); }
  ~MemoryLimit() { retrograd::memory::set_limit(0); }
  MemoryLimit(const MemoryLimit&) = delete;
};

}  // namespace fuzz
