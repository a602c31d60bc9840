// The meaning of "bit for bit" in tests. Tests that also require equal strides, or treat all NaNs as equal, have
// functions of their own.
#pragma once

#include <cstring>

#include "engine/tensor.h"

namespace retrograd::testing {

/// Same dtype, shape, device and bits of every element, of tensors of the CPU; two undefined tensors are the same.
inline bool same_bits(const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined();
  if (!(a.impl().type() == b.impl().type())) return false;
  const Tensor x = a.detach().contiguous(), y = b.detach().contiguous();
  return x.numel() == 0 || std::memcmp(x.raw_data(), y.raw_data(), static_cast<size_t>(x.nbytes())) == 0;
}

}  // namespace retrograd::testing
