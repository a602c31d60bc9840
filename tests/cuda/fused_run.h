// Runs of the groups of tests/cuda/fused_case.h on the cuda:0 of the program.
#pragma once

#include <cstring>

#include "cuda/fusion/fusion.h"
#include "tests/cuda/device_on_host.h"
#include "tests/cuda/fused_case.h"

namespace retrograd::cuda {

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

}  // namespace retrograd::cuda
