// See torch/more_functions.h and torch/linalg.h.
#include "torch/more_functions.h"

#include "torch/linalg.h"

namespace torch {

using retrograd::Operand;

retrograd::Tensors broadcast_tensors(const retrograd::Tensors& tensors, retrograd::SourceLocation where) {
  retrograd::Shape shape;
  for (const Tensor& x : tensors)
    shape = retrograd::broadcast_shapes(shape, x.impl("broadcast_tensors", where).shape(),
                                        "broadcast_tensors", where);
  retrograd::Tensors expanded;
  for (const Tensor& x : tensors) expanded.push_back(x.expand(shape, where));
  return expanded;
}

Tensor upsample_nearest2d(const Operand& x, IntArrayRef output_size) {
  return retrograd::interpolate(x, {.size = output_size.vec(), .mode = "nearest"});
}
Tensor upsample_bilinear2d(const Operand& x, IntArrayRef output_size, bool align_corners) {
  return retrograd::interpolate(
      x, {.size = output_size.vec(), .mode = "bilinear", .align_corners = align_corners});
}

Tensor linalg_norm(const Operand& A, std::optional<Scalar> ord, const retrograd::IntList& dim, bool keepdim) {
  const bool of_matrix = dim.size() == 2 || (dim.empty() && A.tensor("linalg_norm").dim() == 2);
  if (!ord || !of_matrix) return retrograd::vector_norm(A, ord.value_or(2), dim, keepdim);
  const retrograd::IntArray dims =
      dim.empty() ? retrograd::IntArray{-2, -1} : retrograd::IntArray(dim.begin(), dim.end());
  return retrograd::linalg::matrix_norm(A, *ord, dims, keepdim);
}

}  // namespace torch
