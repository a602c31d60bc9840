// See torch/more_functions.h and torch/linalg.h.
#include "torch/more_functions.h"

#include <numeric>

#include "torch/factories.h"
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

namespace {

// The next choice of places below n, in lexicographic order; false after the last one.
bool next_choice(std::vector<int64_t>& places, int64_t n, bool with_replacement) {
  const auto r = static_cast<int64_t>(places.size());
  for (int64_t i = r - 1; i >= 0; --i) {
    const int64_t most = with_replacement ? n - 1 : n - r + i;
    int64_t& place = places[static_cast<size_t>(i)];
    if (place == most) continue;
    ++place;
    for (auto k = static_cast<size_t>(i) + 1; k < places.size(); ++k)
      places[k] = with_replacement ? place : places[k - 1] + 1;
    return true;
  }
  return false;
}

}  // namespace

Tensor combinations(const Operand& x, int64_t r, bool with_replacement) {
  const Tensor& from = x.tensor("combinations");
  if (from.dim() != 1)
    retrograd::fail(retrograd::Category::bad_dim, "combinations",
                    retrograd::describe(from) + " is not a vector", x.where());
  if (r < 0) retrograd::fail(retrograd::Category::bad_argument, "combinations", "r is negative", x.where());
  if (r == 0) return retrograd::empty({0}, from.options());
  const int64_t n = from.size(0);
  if (n < (with_replacement ? 1 : r)) return retrograd::empty({0, r}, from.options());
  std::vector<int64_t> places(static_cast<size_t>(r)), all;
  if (!with_replacement) std::iota(places.begin(), places.end(), 0);
  do all.insert(all.end(), places.begin(), places.end());
  while (next_choice(places, n, with_replacement));
  const Tensor index = tensor(all, TensorOptions(kInt64).device(from.device()));
  return retrograd::index_select(x, 0, index).view({static_cast<int64_t>(all.size()) / r, r});
}

std::tuple<Tensor, Tensor, Tensor, Tensor> linalg_lstsq(const Operand& A, const Operand& B) {
  const Tensor solution = retrograd::linalg::lstsq(A, B), rank = retrograd::linalg::matrix_rank(A);
  return {solution, retrograd::empty({0}, solution.options()), rank,
          retrograd::empty({0}, solution.options())};
}

Tensor linalg_norm(const Operand& A, std::optional<Scalar> ord, const retrograd::IntList& dim, bool keepdim) {
  const bool of_matrix = dim.size() == 2 || (dim.empty() && A.tensor("linalg_norm").dim() == 2);
  if (!ord || !of_matrix) return retrograd::vector_norm(A, ord.value_or(2), dim, keepdim);
  const retrograd::IntArray dims =
      dim.empty() ? retrograd::IntArray{-2, -1} : retrograd::IntArray(dim.begin(), dim.end());
  return retrograd::linalg::matrix_norm(A, *ord, dims, keepdim);
}

}  // namespace torch
