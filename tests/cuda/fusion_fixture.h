// Fusion on the device of tests, for tests: a compiler that can be held back and made to fail, whose kernels
// are compiled for the host; groups run on it.
#pragma once

#include <condition_variable>
#include <cstring>
#include <mutex>

#include "cuda/fusion/compiler.h"
#include "cuda/fusion/fusion.h"
#include "tests/cuda/device_on_host.h"
#include "tests/cuda/fused_case.h"
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

inline Tensors on_device(const Tensors& list) {
  Tensors there;
  for (const Tensor& x : list) there.push_back(with_layout_on_device(x));
  return there;
}

inline std::unique_ptr<FusedKernel> fused(const FusedCase& c) {
  return c.with_group([](const FusedGroup& g) { return cuda_executor(0).fuse(g); });
}

inline Tensor memory_for(const Tensor& like) {
  RefPtr<TensorImpl> cell = TensorImpl::make();
  cell->set_type(like.dtype(), Device(kCUDA, 0), like.impl().shape());
  cuda_executor(0).allocate(*cell);
  return Tensor(std::move(cell));
}

// With output `onto` in the memory of input `donor`, unless that is -1.
inline Tensors run(const FusedKernel& kernel, const FusedCase& c, const Tensors& inputs, int donor = -1,
                   size_t onto = 0) {
  Tensors outputs;
  std::vector<TensorImpl*> in, out;
  for (const Tensor& x : inputs) in.push_back(x.get());
  for (size_t o = 0; o < c.outputs(); ++o) {
    outputs.push_back(donor >= 0 && o == onto ? inputs[static_cast<size_t>(donor)]
                                              : memory_for(c.output_value(o)));
    out.push_back(outputs.back().get());
  }
  kernel.run(in.data(), out.data(), c.attrs().data());
  return outputs;
}

// When its kernel is there.
inline Tensors run_fused(const FusedKernel& kernel, const FusedCase& c, const Tensors& inputs) {
  run(kernel, c, inputs);
  finish_compiling();
  return run(kernel, c, inputs);
}

// NaN equals NaN.
inline void require_same_bits(const Tensor& a, const Tensor& b) {
  const Tensor x = a.cpu(), y = b.cpu();
  const std::vector<double> v = x.to_vector(), w = y.to_vector();
  const size_t item = element_size(x.dtype());
  const char *p = static_cast<const char*>(x.raw_data()), *q = static_cast<const char*>(y.raw_data());
  for (size_t i = 0; i < v.size(); ++i) {
    if (std::memcmp(p + i * item, q + i * item, item) == 0 || (v[i] != v[i] && w[i] != w[i])) continue;
    INFO("element " << i << ": " << v[i] << " and " << w[i]);
    REQUIRE(false);
  }
}
inline void require_same_bits(const Tensors& a, const Tensors& b) {
  for (size_t o = 0; o < a.size(); ++o) {
    INFO("output " << o);
    require_same_bits(a[o], b[o]);
  }
}

inline FusedCase named(const std::string& name) {
  for (FusedCase& c : training_groups())
    if (c.name() == name) return std::move(c);
  throw std::logic_error(name);
}

}  // namespace retrograd::cuda
