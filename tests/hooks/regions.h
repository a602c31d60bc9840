// Shared by the tests of checkpoints and policies: what runs again, what is live, and both kinds of backward.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "engine/region_log.h"
#include "retrograd/retrograd.h"

namespace retrograd::testing {

/// While it lives: the number of recomputations on this thread, and the names of the calls that run again.
class Calls final : public Region::Observer {
 public:
  Calls() { current = this; }
  ~Calls() { current = nullptr; }
  Calls(const Calls&) = delete;
  void recomputes(const Region& region) override {
    ++recomputations;
    started = region.calls_started();
  }
  void runs(const Region::Call& call) override { names.emplace_back(call.op->name); }
  size_t count(std::string_view name) const {
    return static_cast<size_t>(std::count(names.begin(), names.end(), name));
  }

  int recomputations = 0;
  size_t started = 0;  // of the region recomputed last: calls that are started
  std::vector<std::string> names;
};

inline int64_t live() { return memory::stats().live_bytes; }

/// The most bytes that a call adds.
template <class F>
int64_t added_by(const F& f) {
  const int64_t before = live();
  memory::reset_peak();
  f();
  return memory::stats().peak_bytes - before;
}

/// Runs a test eagerly, and with backwards that are captured.
template <class F>
void in_modes(const F& f) {
  SECTION("eager") {
    f([](const Tensor& loss) { loss.backward(); });
  }
  SECTION("traced") {
    CompiledBackward compiled = compile_backward();
    f([&](const Tensor& loss) { compiled(loss); });
  }
}

}  // namespace retrograd::testing
