// Fusion on the device of tests, for tests: a compiler that can be delayed and made to fail, whose kernels are compiled
// for the host; groups run on it.
#pragma once

#include <condition_variable>
#include <mutex>

#include "cuda/fusion/compiler.h"
#include "cuda/fusion/fusion.h"
#include "tests/cuda/device_on_host.h"
#include "tests/cuda/fused_run.h"
#include "tests/cuda/host_kernels.h"

namespace retrograd::cuda {

// Its code is a word; the driver of tests finds the kernels by name. Can be held back, and made to fail.
class TestCompiler final : public fusion::Compiler {
 public:
  std::string version() const override { return version_; }
  Result compile(const fusion::Source& source, const std::vector<std::string>&) override {
    std::unique_lock lock(mutex_);
    opens_.wait(lock, [this] { return !is_held_; });
    ++compiled;
    if (throws) throw std::runtime_error("the compiler is broken");
    if (fails) return {"", "line 1: this is no kernel"};
    return {"code of " + source.name, ""};
  }
  void hold() {
    std::lock_guard lock(mutex_);
    is_held_ = true;
  }
  void release() {
    std::lock_guard lock(mutex_);
    is_held_ = false;
    opens_.notify_all();
  }
  std::atomic<int> compiled{0};
  std::atomic<bool> fails{false}, throws{false};
  std::string version_ = "test 1";

 private:
  std::mutex mutex_;
  std::condition_variable opens_;
  bool is_held_ = false;
};

// Fusion with that compiler while the object lives. Counts are since it began.
struct Fusion {
  HostDriver& driver = device_on_host();
  TestCompiler compiler;
  FusionStats before;
  Fusion() {
    if (driver.kernels.empty()) driver.kernels = fused_kernels();
    fusion::use_compiler(&compiler);
    set_kernel_cache("");
    before = fusion_stats();
  }
  ~Fusion() {
    compiler.release();
    fusion::use_compiler(nullptr);
  }
  FusionStats stats() const {
    FusionStats s = fusion_stats();
    s.groups -= before.groups;
    s.launches -= before.launches;
    s.one_by_one -= before.one_by_one;
    return s;
  }
};

inline FusedCase named(const std::string& name) {
  for (FusedCase& c : training_groups())
    if (c.name() == name) return std::move(c);
  throw std::logic_error(name);
}

}  // namespace retrograd::cuda
