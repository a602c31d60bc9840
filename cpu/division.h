// Division of sizes that rounds up.
#pragma once

#include <cstdint>

namespace retrograd::inline v0::cpu {

/// a / b, rounded up; a >= 0, b > 0.
constexpr int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b > 0); }
/// The least multiple of `multiple` that is not below n.
constexpr int64_t round_up(int64_t n, int64_t multiple) { return ceil_div(n, multiple) * multiple; }

}  // namespace retrograd::cpu
