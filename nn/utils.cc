// See nn/utils.h.
#include "nn/utils.h"

#include <fmt/format.h>

#include "ops/join.h"
#include "ops/shape_ops.h"
#include "ops/views.h"

namespace retrograd::inline v0::nn::utils {

Tensor parameters_to_vector(const Tensors& parameters, SourceLocation where) {
  const CallScope scope(where);
  Tensors flat;
  for (const Tensor& p : parameters) flat.push_back(p.reshape({-1}));
  return cat(flat, 0, where);
}

void vector_to_parameters(const Tensor& vec, const Tensors& parameters, SourceLocation where) {
  const CallScope scope(where);
  int64_t count = 0;
  for (const Tensor& p : parameters) count += p.numel();
  if (vec.dim() != 1 || vec.size(0) != count)
    fail(Category::shape_mismatch, "vector_to_parameters",
         fmt::format("{} for parameters of {} elements", describe(vec), count), where);
  const NoGradGuard no_grad;
  int64_t next = 0;
  for (const Tensor& p : parameters) {
    p.copy_(vec.detach().narrow(0, next, p.numel()).view(p.sizes()));
    next += p.numel();
  }
}

}  // namespace retrograd::nn::utils
