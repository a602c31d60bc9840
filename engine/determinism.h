// The switch of PyTorch's use_deterministic_algorithms. There is nothing to switch: with the same build, device and
// seed every op gives the same bits in each run, on the CPU and on CUDA devices (docs/design.md, Guarantees;
// docs/cuda.md), and no op has a faster variant that does not. So no op is refused either. The state is kept for
// programs that set and read it.
#pragma once

#include <atomic>

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

namespace detail {
inline constinit std::atomic<bool> deterministic_algorithms{false}, only_warns_of_others{false};
}

/// For all threads. Recorded functions and results are the same in either state.
inline void use_deterministic_algorithms(bool mode, bool warn_only = false) {
  detail::deterministic_algorithms.store(mode, std::memory_order_relaxed);
  detail::only_warns_of_others.store(mode && warn_only, std::memory_order_relaxed);
}
inline bool are_deterministic_algorithms_enabled() {
  return detail::deterministic_algorithms.load(std::memory_order_relaxed);
}
inline bool is_deterministic_algorithms_warn_only_enabled() {
  return detail::only_warns_of_others.load(std::memory_order_relaxed);
}

}  // namespace retrograd
#pragma GCC visibility pop
