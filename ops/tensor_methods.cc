// Methods of Tensor whose arguments are libtorch's and not those of one function: forms of to().
#include "engine/named_call.h"
#include "engine/tensor_options.h"
#include "ops/shape_ops.h"

namespace retrograd::inline v0 {

TensorOptions Tensor::options(SourceLocation where) const { return {dtype(where), device(where)}; }

Tensor Tensor::to(Device device, ScalarType dtype, bool, bool copy, SourceLocation where) const {
  const NamedCall call("to", where);
  const Tensor there = to(device, where);
  const Tensor result = there.to(dtype, where);
  return copy && result.is_same(*this) ? clone(where) : result;
}
Tensor Tensor::to(ScalarType dtype, bool non_blocking, bool copy, SourceLocation where) const {
  return to(device(where), dtype, non_blocking, copy, where);
}
Tensor Tensor::to(Device device, bool non_blocking, bool copy, SourceLocation where) const {
  return to(device, dtype(where), non_blocking, copy, where);
}
Tensor Tensor::to(const Tensor& other, bool non_blocking, bool copy, SourceLocation where) const {
  return to(other.device(where), other.dtype(where), non_blocking, copy, where);
}
Tensor Tensor::to_options(const TensorOptions& options, bool copy, SourceLocation where) const {
  const TensorOptions all = options.or_else(this->options(where));
  return to(all.device(), all.dtype(), false, copy, where);
}

}  // namespace retrograd
